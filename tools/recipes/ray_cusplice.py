"""cusplice in Ray's workers: the environment of a runtime_env, for a job, a task or an actor.

    import ray, ray_cusplice
    ray.init(runtime_env=ray_cusplice.runtime_env("/shared/run"))

or for those alone that use a GPU:

    Engine = ray.remote(num_gpus=1, runtime_env=ray_cusplice.runtime_env("/shared/run"))(Engine)

PREFIX is where cusplice is installed on each node. The folder is there on each node before workers start.
"""

import os

PREFIX = os.environ.get("PREFIX", "/opt/cusplice")


def runtime_env(folder, **more):
    """`more`: variables of the program's own, or of cusplice, such as CUSPLICE_CONFIG."""
    variables = {
        "LD_PRELOAD": PREFIX + "/lib/libcusplice.so",
        "CUSPLICE_PRESETS": "auto",
        # A node has a name, and the workers of a node have numbers.
        "CUSPLICE_STATS": folder + "/{host}.{process}.json",
        "CUSPLICE_LOG_FILE": folder + "/{host}.{process}.log",
        # Ray kills actors and idle workers, which then say nothing at their exit.
        "CUSPLICE_STATS_EVERY": "10",
    }
    return {"env_vars": {**variables, **more}}
