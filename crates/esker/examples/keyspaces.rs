//! An index that cannot disagree with its data: two keyspaces, one batch.
//!
//! ```sh
//! cargo run --example keyspaces [DIR]
//! ```

use esker::{Db, Keyspace, KeyspaceOptions, WriteBatch};

struct Books {
    db: Db,
    by_isbn: Keyspace,
    by_author: Keyspace,
}

impl Books {
    fn open(path: &std::path::Path) -> esker::Result<Books> {
        let db = Db::open(path)?;
        let keyspace = |name| match db.keyspace(name) {
            Err(esker::Error::UnknownKeyspace { .. }) => {
                db.create_keyspace(name, KeyspaceOptions::new())
            }
            other => other,
        };
        let (by_isbn, by_author) = (keyspace("by isbn")?, keyspace("by author")?);
        Ok(Books { db, by_isbn, by_author })
    }

    /// A crash leaves both entries or none.
    fn add(&self, isbn: &str, author: &str, title: &str) -> esker::Result<()> {
        let mut batch = WriteBatch::new();
        batch.put_in(&self.by_isbn, isbn, title);
        // The zero byte ends the author, so that "Le" does not find "Le Guin".
        batch.put_in(&self.by_author, format!("{author}\0{isbn}"), "");
        self.db.write(batch)
    }

    /// Index and data as of one moment, whatever is added meanwhile.
    fn titles_of(&self, author: &str) -> esker::Result<Vec<String>> {
        let now = self.db.snapshot();
        let (index, data) = (self.by_author.at(&now), self.by_isbn.at(&now));
        let prefix = format!("{author}\0");
        let mut titles = Vec::new();
        for entry in index.prefix(&prefix) {
            let (key, _) = entry?;
            let title = data.get(&key[prefix.len()..])?.expect("both or none");
            titles.push(String::from_utf8_lossy(&title).into_owned());
        }
        Ok(titles)
    }
}

fn main() -> esker::Result<()> {
    let path = std::env::args_os().nth(1).map_or_else(
        || std::env::temp_dir().join("esker-example-keyspaces"),
        std::path::PathBuf::from,
    );
    let books = Books::open(&path)?;
    books.add("9780441478125", "Le Guin", "The Left Hand of Darkness")?;
    books.add("9780060512750", "Le Guin", "The Dispossessed")?;
    books.add("9780141439518", "Austen", "Pride and Prejudice")?;
    println!("{:?}", books.titles_of("Le Guin")?);
    books.db.close()
}
