/* The one place that knows the version. */
#ifndef CUSPLICE_BASE_VERSION_H
#define CUSPLICE_BASE_VERSION_H

#define CUSPLICE_VERSION "0.1.0"

#endif
