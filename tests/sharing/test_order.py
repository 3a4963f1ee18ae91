"""Hosts that share a log have the same model, to the byte, whatever came in which order."""

from hypothesis import HealthCheck, given, settings

from shared_logs import STEPS, exports_are_equal
from support import examples

# A message that a host learned and took back before it sent either, while others had learned
# other copies of it.
TAKEN_BACK = [(0, ("teach", 0, 0, "ham", 0, False))] * 5 + [
    (0, ("send",)),
    (0, ("teach", 1, 0, "ham", 0, False)),
    (2, ("teach", 0, 0, "ham", 1, False)),
    (2, ("teach", 0, 0, None, 0, False)),
]


def test_a_lesson_taken_back_before_it_was_sent_leaves_exports_equal(tmp_path):
    exports_are_equal(tmp_path, TAKEN_BACK)


@settings(
    examples(40), derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=STEPS)
def test_after_quiet_all_exports_are_equal(tmp_path, acts):
    exports_are_equal(tmp_path, acts)
