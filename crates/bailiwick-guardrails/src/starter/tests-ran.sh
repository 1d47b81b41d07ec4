#!/bin/sh
# Runs at the end of a turn in which files were written and no test succeeded. What it prints goes to the assistant.
echo "Files were changed and no test has passed since. Run the project's tests before you call this done."
exit 1
