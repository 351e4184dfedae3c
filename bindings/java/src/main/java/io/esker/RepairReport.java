package io.esker;

import java.util.List;

/**
 * What a repair did.
 *
 * @param changed whether it changed anything: a sound store stays as it is
 * @param tables tables of the store as it is now
 * @param entries entries in them and in its log, all versions counted
 * @param problems what was found wrong; most of it need not be a loss
 * @param lost what was lost, each once; empty for nothing
 * @param unchecked what was left as it is because it needs a comparator that is not known here
 */
public record RepairReport(
        boolean changed, long tables, long entries, List<Finding> problems, List<Finding> lost, List<Finding> unchecked) {}
