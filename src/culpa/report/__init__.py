"""What an experiment found, for people and for programs, and the view of it while it runs."""

from culpa.report.deliver import (
    choose_view,
    print_plan,
    print_reading,
    print_result,
    print_runs,
    write_reports,
)

__all__ = ["choose_view", "print_plan", "print_reading", "print_result", "print_runs", "write_reports"]
