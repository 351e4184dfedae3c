//! The report as people see it: drawn from made-up results, and opened in a real browser.

mod browser;
mod sample;

use browser::Browser;
use std::path::Path;

/// What the page finds out about itself in the browser.
const SELF_CHECK: &str = include_str!("report/selfcheck.js");

/// A directory with a drawn report; kept where ESKER_REPORT_KEEP says.
fn drawn(name: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = match std::env::var_os("ESKER_REPORT_KEEP") {
        Some(keep) => Path::new(&keep).join(name),
        None => temp.path().to_path_buf(),
    };
    std::fs::create_dir_all(&dir).unwrap();
    sample::write(&dir, 1.0);
    esker_bench::report::write_all(&dir).unwrap();
    (temp, dir)
}

#[test]
fn the_report_is_sound_in_a_browser() {
    let Some(browser) = Browser::find() else { return };
    let (_temp, dir) = drawn("browser");
    let html = std::fs::read_to_string(dir.join("report.html")).unwrap();
    let checked = dir.join("checked.html");
    let script = format!("<script>{SELF_CHECK}</script></body>");
    std::fs::write(&checked, html.replace("</body>", &script)).unwrap();
    for width in [1280, 400] {
        for dark in [false, true] {
            let found = browser.self_check(&checked, width, dark);
            let context = format!("{width} px, {}: {found}", if dark { "dark" } else { "light" });
            assert_eq!(found["viewport"], width, "{context}");
            assert_eq!(found["problems"], serde_json::json!([]), "{context}");
            assert!(found["charts"].as_u64().unwrap() > 20, "{context}");
            assert!(found["bars"].as_u64().unwrap() > 150, "{context}");
            assert!(found["lines"].as_u64().unwrap() > 50, "{context}");
            assert_eq!(found["dark"], dark, "{context}");
            let picture = dir.join(format!("{width}-{}.png", if dark { "dark" } else { "light" }));
            browser.screenshot(&dir.join("report.html"), width, dark, &picture);
        }
    }
}
