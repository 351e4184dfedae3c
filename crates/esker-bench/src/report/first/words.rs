//! What a row does, in words, for readers who do not know the names of cases.

/// A row's title; `name` where there are no better words.
pub(super) fn title(key: &str, name: &str) -> String {
    // Others have words of their own for these.
    if let (true, Some(what)) = (key == name, of_store(key)) {
        return what.to_string();
    }
    let (base, state) = key.split_once('.').unwrap_or((key, ""));
    // What is overwritten without limit has its number of threads in its name only.
    let threads = match name.strip_prefix("overwrite").and_then(|rest| rest.chars().next()) {
        Some(n) if n.is_ascii_digit() => format!(" without limit, {n} thread{}", plural(n != '1')),
        _ => String::new(),
    };
    if let (false, Some(what)) = (threads.is_empty(), of_overwrites(key)) {
        return format!("{what}, overwrites{threads}");
    }
    let Some(what) = what(base) else {
        // Mixes have their document's names; what is settled of them is what they have left to be done.
        return match name.strip_suffix(", settled").filter(|_| state == "settled") {
            Some(mix) => format!("{mix}, settling included"),
            None => name.to_string(),
        };
    };
    let reads = base.starts_with("read") && !base.starts_with("readwhilewriting");
    let is_read = reads || base.starts_with("seek") || base == "scan" || base == "reverse";
    let state = match state {
        "settled" if is_read => ", settled",
        "settled" => ", settling included",
        "second" => ", second pass",
        "limited" => ", more data than memory",
        "loaded" => " right after a random load",
        "overwritten" => " right after everything was overwritten",
        "flood" => " during a flood of writes",
        "10k" => " beside a writer of 10,000/s",
        "50k" => " beside a writer of 50,000/s",
        "gap" => " across a range just deleted",
        "gaps" => " across a range of which half was just deleted",
        "ordered" => " right after a load in order",
        "random" => " right after a random load",
        "first" => ", the first of a new process",
        // Motion's reads say all; those of the other suites follow a load.
        "" if reads && base != "read" => " right after the load",
        "" if base == "seekrandom" => " right after the load",
        _ => "",
    };
    format!("{what}{threads}{state}")
}

/// What is told of a store and not of an operation.
fn of_store(key: &str) -> Option<&'static str> {
    Some(match key {
        "settle" => "Time to settle after a random load",
        "disk" => "Disk right after a random load",
        "disk.settled" => "Disk, settled",
        "memory" => "Peak of memory that is allocated",
        "memory.mapped" => "Peak of files that are mapped",
        "memory.dirty" => "Peak of what is nowhere but in memory",
        "reopen" => "Closing, opening and one read",
        // Of runs before it: closing did not count.
        "open" => "Opening and one read",
        "open.killed" => "Opening and one read after kill -9",
        _ => return None,
    })
}

/// What is told of overwrites without limit beside their rate.
fn of_overwrites(key: &str) -> Option<&'static str> {
    Some(match key {
        "worst_put" => "Worst put",
        "p9999_put" => "Put at the 99.99th percentile",
        "worst_quarter" => "Puts in the worst quarter of a second",
        "disk_to_live" => "Disk for each byte that is alive",
        "written_per_byte" => "Bytes written for each byte put",
        "settle" => "Time to settle",
        _ => return None,
    })
}

fn plural(many: bool) -> &'static str {
    if many { "s" } else { "" }
}

fn what(base: &str) -> Option<String> {
    let text = match base {
        "readrandom" | "read" => "Random reads",
        "readmissing" => "Reads of keys that are not there",
        "readhot" => "Reads of few, hot keys",
        "readseq" | "scan" => "Scan in order",
        "readreverse" | "reverse" => "Scan backwards",
        "seekrandom" | "seek10" => "Seek and the next 10 entries",
        "seek50" => "Seek and the next 50 entries",
        "fillseq" => "Writes in key order",
        "fillrandom" => "Random writes",
        "fillbatch" => "Writes in key order, in batches",
        "fillrandbatch" => "Random writes, in batches",
        "fillsync" => "Random writes, each on the device",
        "fillsyncseq" => "Writes in key order, each on the device",
        "fill100Kseq" => "Large values in key order",
        "fill100Krandom" => "Large values, random keys",
        "overwrite" => "Overwrites",
        "deleterandom" => "Random deletes",
        "queue" => "Queue in which one entry waits",
        "queue1000" => "Queue in which 1,000 entries wait",
        _ => return numbered(base),
    };
    Some(text.to_string())
}

/// Names with a number of threads.
fn numbered(base: &str) -> Option<String> {
    let number = |prefix: &str| base.strip_prefix(prefix)?.parse::<u64>().ok();
    if let Some(n) = number("readwhilewriting") {
        return Some(format!("{n} reader{} beside a writer of 10,000/s", plural(n != 1)));
    }
    Some(format!("Random writes of {} threads, each on the device", number("fillsync")?))
}

#[cfg(test)]
mod tests {
    use super::title;

    #[test]
    fn rows_are_named_in_words_and_others_keep_their_names() {
        for (key, name, words) in [
            ("readrandom", "Random Reads", "Random reads right after the load"),
            ("readrandom.settled", "x", "Random reads, settled"),
            ("fillseq.settled", "x", "Writes in key order, settling included"),
            ("fillseq", "x", "Writes in key order"),
            ("readwhilewriting4", "x", "4 readers beside a writer of 10,000/s"),
            ("fillsync16", "x", "Random writes of 16 threads, each on the device"),
            ("read.flood", "x", "Random reads during a flood of writes"),
            ("overwrite", "overwrite4", "Overwrites without limit, 4 threads"),
            ("overwrite", "Overwrites", "Overwrites"),
            ("a", "A: reads 50, updates 50", "A: reads 50, updates 50"),
            ("queue1000", "1,000 wait", "Queue in which 1,000 entries wait"),
            ("drain", "a backlog is taken", "a backlog is taken"),
            ("settle", "settle", "Time to settle after a random load"),
            ("settle", "overwrite1 settle", "Time to settle, overwrites without limit, 1 thread"),
            ("a.settled", "A: reads 50, settled", "A: reads 50, settling included"),
        ] {
            assert_eq!(title(key, name), words);
        }
    }
}
