//! A store opened by a relative path, while the process changes its directory to one where a store
//! lies under the same name: the first goes on where it was, the other is not touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use esker::KeyOrder;

use super::{Scenario, no_part};
use crate::callers::bounds;
use crate::callers::draw::Keys;
use crate::callers::model::Model;
use crate::callers::ops::Ops;
use crate::callers::round::Round;
use crate::callers::settings::Settings;

pub const SCENARIO: Scenario = Scenario { name: "directories", play, part: no_part };

fn play(round: &mut Round) -> Result<(), String> {
    let settings = Settings::small(&mut round.rng);
    let (here, there) = (round.dir.join("here"), round.dir.join("there"));
    let mut models = Vec::new();
    for dir in [&there, &here] {
        fs::create_dir(dir).map_err(|e| e.to_string())?;
        std::env::set_current_dir(dir).map_err(|e| e.to_string())?;
        let mut model = Model::new();
        model.add("other", KeyOrder::Reverse);
        let (db, spaces) = model.open(Path::new("store"), &settings)?;
        models.push((model, db, spaces));
    }
    let (mut model, db, spaces) = models.pop().ok_or("two stores")?;
    let orders: Vec<KeyOrder> = model.orders().map(|(_, o)| o).collect();
    let mut ops = Ops::new(round.rng.next(), orders, Keys { n: 300, writer: 0 });
    // The store there is left at once, and then is not open.
    models.clear();
    if round.rng.one_in(3) {
        fs::remove_dir_all(there.join("store")).map_err(|e| e.to_string())?;
    }
    let before = contents(&there)?;
    for n in 0..1500 {
        if n % 500 == 250 {
            std::env::set_current_dir(&there).map_err(|e| e.to_string())?;
        }
        if n % 500 == 499 {
            std::env::set_current_dir(&here).map_err(|e| e.to_string())?;
        }
        let op = ops.next();
        op.perform(&db, &spaces).map_err(|e| format!("from elsewhere: {e}"))?;
        model.done(&op);
    }
    std::env::set_current_dir(&there).map_err(|e| e.to_string())?;
    model.compare(&db, &mut round.rng)?;
    drop(spaces);
    db.close().map_err(|e| format!("closing from elsewhere: {e}"))?;
    if contents(&there)? != before {
        return Err("the directory that the process went to was changed".to_string());
    }
    bounds::sound(&here.join("store"), &model, &settings, &mut round.rng)
}

/// All files of the store below a directory, if there is one.
fn contents(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut all = BTreeMap::new();
    let Ok(files) = fs::read_dir(dir.join("store")) else { return Ok(all) };
    for file in files {
        let file = file.map_err(|e| e.to_string())?;
        let bytes = fs::read(file.path()).map_err(|e| e.to_string())?;
        all.insert(file.file_name().to_string_lossy().into_owned(), bytes);
    }
    Ok(all)
}
