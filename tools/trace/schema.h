/*
 * The tables of an SQLite export; database.h includes it. Tables without CUSPLICE_ in their names
 * match `nsys export` (schema 3.24) in columns and types. A value that a trace lacks is 0 where
 * nsys allows no NULL, and NULL elsewhere.
 */
#ifndef CUSPLICE_TOOLS_TRACE_SCHEMA_H
#define CUSPLICE_TOOLS_TRACE_SCHEMA_H

/* SCHEMA_TABLE(name, columns), in the order of creation. The first word of a column is its name. */
#define SCHEMA_TABLES(SCHEMA_TABLE)                                                                \
    SCHEMA_TABLE(StringIds, "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL")                \
    SCHEMA_TABLE(META_DATA_EXPORT, "name TEXT NOT NULL, value TEXT")                               \
    SCHEMA_TABLE(ENUM_NSYS_EVENT_CLASS, "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT")  \
    SCHEMA_TABLE(ENUM_CUDA_MEMCPY_OPER, "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT")  \
    SCHEMA_TABLE(ENUM_CUDA_KERNEL_LAUNCH_TYPE,                                                     \
                 "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT")                         \
    SCHEMA_TABLE(ENUM_CUPTI_STREAM_TYPE, "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT") \
    SCHEMA_TABLE(PROCESSES, "globalPid INTEGER, pid INTEGER, name TEXT")                           \
    SCHEMA_TABLE(ThreadNames, "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER")      \
    SCHEMA_TABLE(TARGET_INFO_CUDA_CONTEXT_INFO,                                                    \
                 "nullStreamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, "   \
                 "processId INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT "   \
                 "NULL, parentContextId INTEGER, isGreenContext INTEGER")                          \
    SCHEMA_TABLE(TARGET_INFO_CUDA_STREAM,                                                          \
                 "streamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, "       \
                 "processId INTEGER NOT NULL, contextId INTEGER NOT NULL, priority INTEGER NOT "   \
                 "NULL, flag INTEGER NOT NULL")                                                    \
    SCHEMA_TABLE(CUPTI_ACTIVITY_KIND_RUNTIME,                                                      \
                 "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "     \
                 "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, "             \
                 "returnValue INTEGER NOT NULL, callchainId INTEGER")                              \
    SCHEMA_TABLE(CUPTI_ACTIVITY_KIND_KERNEL,                                                       \
                 "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "       \
                 "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, " \
                 "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, "      \
                 "shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, "           \
                 "cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT "    \
                 "NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, " \
                 "blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER "   \
                 "NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER "   \
                 "NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, "          \
                 "sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig "     \
                 "INTEGER, graphId INTEGER, clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER") \
    SCHEMA_TABLE(CUPTI_ACTIVITY_KIND_MEMCPY,                                                       \
                 "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "       \
                 "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, " \
                 "correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind "     \
                 "INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER")        \
    SCHEMA_TABLE(CUPTI_ACTIVITY_KIND_MEMSET,                                                       \
                 "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "       \
                 "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, " \
                 "correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes "        \
                 "INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER")                         \
    SCHEMA_TABLE(CUSPLICE_FACTS, "name TEXT NOT NULL, value")                                      \
    SCHEMA_TABLE(CUSPLICE_STREAM, "streamId INTEGER NOT NULL PRIMARY KEY, contextId INTEGER NOT "  \
                                  "NULL, deviceId INTEGER NOT NULL, kind TEXT NOT NULL, flags "    \
                                  "INTEGER NOT NULL, priority INTEGER NOT NULL")                   \
    SCHEMA_TABLE(CUSPLICE_KIND,                                                                    \
                 "kindId INTEGER NOT NULL PRIMARY KEY, op TEXT NOT NULL, nameId INTEGER NOT "      \
                 "NULL, flags INTEGER NOT NULL, elem INTEGER NOT NULL, form INTEGER NOT NULL, "    \
                 "paramBytes INTEGER NOT NULL, clusterX INTEGER NOT NULL, clusterY INTEGER NOT "   \
                 "NULL, clusterZ INTEGER NOT NULL")                                                \
    SCHEMA_TABLE(CUSPLICE_OP,                                                                      \
                 "correlationId INTEGER NOT NULL PRIMARY KEY, kindId INTEGER NOT NULL, streamId "  \
                 "INTEGER NOT NULL, stepId INTEGER NOT NULL, outcome TEXT NOT NULL, launchId "     \
                 "INTEGER, flushId INTEGER, place INTEGER, eagerId INTEGER, whyId INTEGER, "       \
                 "elements INTEGER")                                                               \
    SCHEMA_TABLE(CUSPLICE_RECORD,                                                                  \
                 "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "       \
                 "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "  \
                 "globalPid INTEGER, graphNodeId INTEGER, event INTEGER NOT NULL, number INTEGER " \
                 "NOT NULL")                                                                       \
    SCHEMA_TABLE(CUSPLICE_WAIT,                                                                    \
                 "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "       \
                 "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "  \
                 "globalPid INTEGER, graphNodeId INTEGER, event INTEGER NOT NULL, number INTEGER " \
                 "NOT NULL")                                                                       \
    SCHEMA_TABLE(CUSPLICE_LAUNCH,                                                                  \
                 "launchId INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, end INTEGER NOT " \
                 "NULL, globalTid INTEGER NOT NULL, streamId INTEGER NOT NULL, segmentId INTEGER " \
                 "NOT NULL, variant INTEGER NOT NULL, choice TEXT NOT NULL, ops INTEGER NOT "      \
                 "NULL, patched INTEGER NOT NULL, buildNs INTEGER NOT NULL, bytes INTEGER NOT "    \
                 "NULL")                                                                           \
    SCHEMA_TABLE(                                                                                  \
        CUSPLICE_FLUSH,                                                                            \
        "flushId INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, globalTid INTEGER "         \
        "NOT NULL, streamId INTEGER NOT NULL, ops INTEGER NOT NULL, causeId INTEGER, "             \
        "reasonId INTEGER")                                                                        \
    SCHEMA_TABLE(CUSPLICE_CALL,                                                                    \
                 "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER NOT NULL, "      \
                 "nameId INTEGER, streamId INTEGER, what TEXT NOT NULL, scope TEXT NOT NULL, abi " \
                 "INTEGER NOT NULL, value INTEGER NOT NULL")                                       \
    SCHEMA_TABLE(CUSPLICE_SEGMENT,                                                                 \
                 "segmentId INTEGER NOT NULL, start INTEGER NOT NULL, globalTid "                  \
                 "INTEGER NOT NULL, streamId INTEGER NOT NULL, ops INTEGER NOT "                   \
                 "NULL")                                                                           \
    SCHEMA_TABLE(CUSPLICE_LOST, "start INTEGER NOT NULL, globalTid INTEGER NOT NULL, records "     \
                                "INTEGER NOT NULL, ops INTEGER NOT NULL")                          \
    SCHEMA_TABLE(CUSPLICE_STEP,                                                                    \
                 "stepId INTEGER NOT NULL PRIMARY KEY, streamId INTEGER NOT NULL, number INTEGER " \
                 "NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, ops INTEGER NOT NULL, "  \
                 "inGraphs INTEGER NOT NULL, graphs INTEGER NOT NULL, signature TEXT NOT NULL")

#define SCHEMA_NUMBER(name, columns) SCHEMA_##name,
enum schema_table { SCHEMA_TABLES(SCHEMA_NUMBER) SCHEMA_N };
#undef SCHEMA_NUMBER

#define SCHEMA_NSYS_VERSION "3.24.14"

#endif
