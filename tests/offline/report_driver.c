/* report_driver.c - `tally report` without the rest of the command line. */
int tly_cmd_report(int argc, char **argv);

int main(int argc, char **argv) { return tly_cmd_report(argc, argv); }
