"""What ``oraudit`` can be asked to do, a file for each command."""
