package io.esker;

import java.util.List;

/**
 * What a verification found.
 *
 * @param files files read
 * @param bytes bytes of them
 * @param entries entries that can be read, all versions counted
 * @param problems everything found wrong; empty for a sound store
 */
public record VerifyReport(long files, long bytes, long entries, List<Finding> problems) {
    /**
     * Whether nothing is wrong.
     *
     * @return whether there are no problems
     */
    public boolean isSound() {
        return problems.isEmpty();
    }
}
