"""Which tests run in a sanitized build: not those marked `plain`, and of parameters with `sanitized_with` only the named value."""


def _parameters(item):
    return getattr(getattr(item, "callspec", None), "params", {})


def _is_left_out(item):
    if item.get_closest_marker("plain"):
        return True
    given = _parameters(item)
    return any(name in given and given[name] != value for mark in item.iter_markers("sanitized_with") for name, value in mark.kwargs.items())


def _function(item):
    return item.nodeid.split("[")[0]


def run_sanitized(items):
    """The items that run. A mark never leaves out all variants of a test: its value is then one that the parameter does not have."""
    left = [item for item in items if not _is_left_out(item)]
    wanted = {_function(item) for item in items if not item.get_closest_marker("plain")}
    lost = wanted - {_function(item) for item in left}
    if lost:
        raise ValueError(f"sanitized_with leaves nothing of {', '.join(sorted(lost))}")
    return left
