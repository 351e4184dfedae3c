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

/// The benchmark's own command, with what is asked of results that are there.
fn command(arguments: &[&str]) -> (i32, String, String) {
    let program = env!("CARGO_BIN_EXE_esker-bench");
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_draws_and_compares() {
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    sample::write(before.path(), 1.0);
    sample::write(after.path(), 0.5);
    let [a, b] = [&before, &after].map(|dir| dir.path().to_str().unwrap());

    let (code, out, errors) = command(&["report", a]);
    assert_eq!(code, 0, "{errors}");
    let svgs = ["first.svg", "chart-leveldb2011.svg", "chart-symas2014.svg"];
    for name in ["report.html", "report.md"].into_iter().chain(svgs) {
        assert!(out.contains(name), "{out}");
        assert!(before.path().join(name).metadata().unwrap().len() > 5_000, "{name}");
    }

    // The sample's Esker is as fast in both; all others have half their speed in the second.
    let (code, out, _) = command(&["compare", a, b, "--engine", "esker"]);
    assert_eq!((code, out.contains("<< worse")), (0, false), "{out}");
    let (code, out, _) = command(&["compare", a, b, "--engine", "lmdb", "--threshold", "20"]);
    assert_eq!((code, out.contains("<< worse")), (1, true), "{out}");
    let (code, out, _) = command(&["compare", a, b, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, json["threshold_percent"].as_f64()), (1, Some(10.0)));

    if let Ok(full) = std::fs::File::options().write(true).open("/dev/full") {
        let mut compare = std::process::Command::new(env!("CARGO_BIN_EXE_esker-bench"));
        let output = compare.args(["compare", a, b, "--json"]).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && errors.contains("cannot print"), "{errors}");
    }

    let (code, _, errors) = command(&["report", "/no/such/place"]);
    assert!(code == 3 && errors.contains("/no/such/place"), "{errors}");
    std::fs::write(after.path().join("results.jsonl"), "{\n").unwrap();
    let (code, _, errors) = command(&["compare", a, b]);
    assert!(code == 3 && errors.contains("results.jsonl") && errors.contains("line 1"), "{errors}");
}

#[test]
fn the_report_can_be_printed() {
    let Some(browser) = Browser::find() else { return };
    let (_temp, dir) = drawn("print");
    let pdf = dir.join("report.pdf");
    browser.print(&dir.join("report.html"), &pdf);
    let bytes = std::fs::read(&pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF-"));
    let pages = bytes.windows(12).filter(|w| w == b"/Type /Page\n").count();
    assert!((4..80).contains(&pages), "{pages} pages");
}

#[test]
fn the_report_is_sound_in_a_browser() {
    let Some(browser) = Browser::find() else { return };
    let (_temp, dir) = drawn("browser");
    let html = std::fs::read_to_string(dir.join("report.html")).unwrap();
    // Where the fonts that are asked for are missing, a wider one takes their place.
    let fonts = "\"Helvetica Neue\", Helvetica, Arial, \"Liberation Sans\", system-ui";
    assert!(html.contains(fonts));
    let wide = html.replace(fonts, "\"DejaVu Sans\"");
    for (name, html) in [("usual", &html), ("wide", &wide)] {
        let page = dir.join(format!("{name}.html"));
        let script = format!("<script>{SELF_CHECK}</script></body>");
        std::fs::write(&page, html.replace("</body>", &script)).unwrap();
        for (width, dark) in [(1280, false), (1280, true), (400, false), (400, true)] {
            let context = format!("{name} font, {width} px, dark {dark}");
            check(&browser.self_check(&page, width, dark), width, dark, &context);
        }
    }
    for (width, dark) in [(1280, false), (1280, true), (400, false), (400, true)] {
        let picture = dir.join(format!("{width}-{}.png", if dark { "dark" } else { "light" }));
        browser.screenshot(&dir.join("report.html"), width, dark, &picture);
    }
}

/// What the page found out about itself: that it is as it was asked for, whole, and without fault.
fn check(found: &serde_json::Value, width: u32, dark: bool, context: &str) {
    let context = format!("{context}: {found}");
    assert_eq!(found["problems"], serde_json::json!([]), "{context}");
    assert_eq!(found["viewport"], width, "{context}");
    assert_eq!(found["dark"], dark, "{context}");
    for (what, least) in [("charts", 60), ("bars", 350), ("lines", 400)] {
        assert!(found[what].as_u64().unwrap() > least, "few {what}: {context}");
    }
}
