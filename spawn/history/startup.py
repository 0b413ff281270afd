# Written by sandbox-sidecar. Before version 3.13 no variable names the history.
def _sandbox_sidecar():
    import os
    import sys

    name = os.environ.get("PYTHON_HISTORY", "")
    if sys.version_info >= (3, 13) or name in ("", os.devnull):
        return
    try:
        import atexit
        import readline

        atexit.register(_sandbox_sidecar_save, readline, name)
        readline.read_history_file(name)
    except (ImportError, OSError, IOError):
        pass


def _sandbox_sidecar_save(readline, name):
    try:
        readline.set_history_length(10000)
        readline.write_history_file(name)
    except (OSError, IOError):
        pass


try:
    _sandbox_sidecar()
finally:
    del _sandbox_sidecar, _sandbox_sidecar_save
