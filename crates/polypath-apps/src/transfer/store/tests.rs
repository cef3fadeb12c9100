//! Tests of the receiver's side: what a sender may and may not do.

use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use std::io;

use super::offer::grant;
use super::*;
use crate::transfer::digest::DIGEST;
use crate::transfer::message::Blocks;

fn store(place: &Path, rules: Rules) -> Store {
    Store::new(Output::at(place), "sender".into(), rules, Arc::default()).unwrap()
}

fn begin(entries: u64, size: Option<u64>) -> FromSender {
    FromSender::Begin(Begin { name: "x".into(), size, entries, tops: vec!["x".into()] })
}

fn entry(id: u64, path: &str, kind: Kind) -> FromSender {
    let path = path.split('/').map(str::to_owned).collect();
    FromSender::Entry(Entry { id, path, kind, mode: Some(0o750), modified: Some((1000, 0)) })
}

fn end(id: u64, content: &[u8]) -> FromSender {
    let sha256 = hex(&Sha256::digest(content));
    FromSender::End(End { id, size: content.len() as u64, sha256 })
}

fn file(content: &[u8]) -> Kind {
    Kind::File(Some(content.len() as u64))
}

/// Passes messages to a store; returns its replies.
fn give(
    store: &mut Store,
    messages: impl IntoIterator<Item = FromSender>,
) -> Result<Vec<Reply>, Error> {
    let mut replies = Vec::new();
    for message in messages {
        store.handle(message, &mut replies)?;
    }
    Ok(replies)
}

/// A file whose bytes are sent from the beginning.
fn whole(id: u64, path: &str, content: &'static [u8]) -> [FromSender; 4] {
    [
        entry(id, path, file(content)),
        FromSender::Start(Place { id, offset: 0 }),
        FromSender::Bytes(Bytes::from_static(content)),
        end(id, content),
    ]
}

fn names(place: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn refusal(replies: &[Reply]) -> &str {
    match replies.last() {
        Some(Reply::Refused(Reason { reason, .. })) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_folder_arrives_with_its_attributes() {
    let place = tempfile::tempdir().unwrap();
    let mut store = store(place.path(), Rules::default());
    let mut messages = vec![begin(3, Some(3)), entry(0, "x", Kind::Folder)];
    messages.extend(whole(1, "x/file", b"abc"));
    messages.push(entry(2, "x/link", Kind::Link("file".into())));
    let FromSender::Entry(folder) = entry(0, "x", Kind::Folder) else { panic!() };
    messages.extend([FromSender::Close(folder), FromSender::Finish]);
    let replies = give(&mut store, messages).unwrap();
    assert_eq!(replies.last(), Some(&Reply::Finished));
    let outcome = store.finish();
    assert_eq!((outcome.files, outcome.bytes, outcome.rejections), (1, 3, 0));
    assert_eq!(std::fs::read(place.path().join("x/link")).unwrap(), b"abc");
    for name in ["x", "x/file"] {
        let about = place.path().join(name).metadata().unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o750, "{name}");
        let modified = about.modified().unwrap().duration_since(std::time::UNIX_EPOCH);
        assert_eq!(modified.unwrap().as_secs(), 1000, "{name}");
    }
}

#[test]
fn nothing_is_replaced_without_a_request() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("x"), "old").unwrap();
    let mut first = store(place.path(), Rules::default());
    let replies = give(&mut first, [begin(1, None), entry(0, "x", Kind::File(Some(4)))]).unwrap();
    assert!(refusal(&replies).contains("exists and is not replaced"));
    // The same size: the content decides.
    let mut second = store(place.path(), Rules::default());
    let messages = [
        begin(1, None),
        entry(0, "x", Kind::File(Some(3))),
        FromSender::Blocks(Blocks { id: 0, digests: vec![[0; DIGEST]] }),
    ];
    assert!(refusal(&give(&mut second, messages).unwrap()).contains("is not replaced"));
    assert_eq!(std::fs::read(place.path().join("x")).unwrap(), b"old");
    let mut third = store(place.path(), Rules { overwrite: true, ..Rules::default() });
    let [announce, rest @ ..] = whole(0, "x", b"new!");
    give(&mut third, [begin(1, None), announce].into_iter().chain(rest)).unwrap();
    assert_eq!(std::fs::read(place.path().join("x")).unwrap(), b"new!");
}

#[test]
fn what_is_there_already_is_not_sent_again() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("x"), "same").unwrap();
    let mut store = store(place.path(), Rules::default());
    let digest = Sha256::digest(b"same")[..DIGEST].try_into().unwrap();
    let messages = [
        begin(1, None),
        entry(0, "x", file(b"same")),
        FromSender::Blocks(Blocks { id: 0, digests: vec![digest] }),
        FromSender::Finish,
    ];
    let replies = give(&mut store, messages).unwrap();
    let have = Reply::Have { id: 0, bytes: 4, block: 1 << 20 };
    assert_eq!(replies, [have, Reply::Done { id: 0 }, Reply::Finished]);
    let outcome = store.finish();
    assert_eq!((outcome.kept, outcome.done[0].sha256.len()), (4, 64));
}

#[test]
fn an_interrupted_file_continues() {
    let place = tempfile::tempdir().unwrap();
    let mut first = store(place.path(), Rules::default());
    let [announce, start, bytes, _] = whole(0, "x", b"abc");
    give(&mut first, [begin(1, None), announce, start, bytes]).unwrap();
    first.abandon(&protocol("is lost"));
    assert_eq!(names(place.path()).len(), 1);
    let mut second = store(place.path(), Rules::default());
    let replies = give(&mut second, [begin(1, None), entry(0, "x", file(b"abcdef"))]).unwrap();
    assert_eq!(replies, [Reply::Have { id: 0, bytes: 3, block: 1 << 20 }]);
    let digest = Sha256::digest(b"abc")[..DIGEST].try_into().unwrap();
    let blocks = FromSender::Blocks(Blocks { id: 0, digests: vec![digest] });
    assert_eq!(give(&mut second, [blocks]).unwrap(), [grant(0, 3)]);
    let rest = [
        FromSender::Start(Place { id: 0, offset: 3 }),
        FromSender::Bytes(Bytes::from_static(b"def")),
        end(0, b"abcdef"),
    ];
    assert_eq!(give(&mut second, rest).unwrap(), [Reply::Done { id: 0 }]);
    assert_eq!(names(place.path()), ["x"]);
    assert_eq!(second.finish().kept, 3);
}

#[test]
fn limits_hold() {
    let place = tempfile::tempdir().unwrap();
    let rules = Rules { most_bytes: Some(4), most_entries: 2, ..Rules::default() };
    let fails = |messages: Vec<FromSender>| {
        give(&mut store(place.path(), rules.clone()), messages).unwrap_err().to_string()
    };
    assert!(fails(vec![begin(3, None)]).contains("exceed the limit of 2"));
    assert!(fails(vec![begin(1, Some(5))]).contains("exceeds the limit of 4 bytes"));
    let [announce, start, bytes, _] = whole(0, "x", b"12345");
    assert!(
        fails(vec![begin(1, None), announce, start, bytes])
            .contains("exceeds the limit of 4 bytes")
    );
    let twice = vec![begin(1, None), entry(0, "a", Kind::Folder), entry(1, "b", Kind::Folder)];
    assert!(fails(twice).contains("more entries than it announced"));
    let more = vec![
        begin(1, None),
        entry(0, "y", Kind::File(Some(2))),
        FromSender::Start(Place { id: 0, offset: 0 }),
        FromSender::Bytes(Bytes::from_static(b"123")),
    ];
    assert!(fails(more).contains("more than the 2 bytes that it announced"));
    let huge = vec![begin(1, Some(u64::MAX))];
    let empty = tempfile::tempdir().unwrap();
    let mut unlimited = store(empty.path(), Rules::default());
    let error = give(&mut unlimited, huge).unwrap_err().to_string();
    assert!(error.contains("no space left on device: "), "{error}");
}

#[test]
fn a_link_leads_nowhere_else() {
    let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(outside.path(), place.path().join("x")).unwrap();
    let mut store = store(place.path(), Rules { overwrite: true, ..Rules::default() });
    let replies = give(
        &mut store,
        [
            begin(4, None),
            entry(0, "x", Kind::Folder),
            entry(1, "x/file", file(b"abc")),
            entry(2, "link", Kind::Link("/etc".into())),
            entry(3, "link/file", file(b"abc")),
        ],
    )
    .unwrap();
    assert!(replies.iter().all(|reply| matches!(reply, Reply::Refused(_))), "{replies:?}");
    assert_eq!(names(outside.path()), [""; 0]);
    assert_eq!(names(place.path()), ["x"]);
}

#[test]
fn one_file_goes_under_the_chosen_name_or_into_a_stream() {
    let place = tempfile::tempdir().unwrap();
    let mut chosen = store(&place.path().join(".chosen"), Rules::default());
    let messages = [begin(1, Some(3))].into_iter().chain(whole(0, "../x", b"abc"));
    give(&mut chosen, messages).unwrap();
    assert_eq!(names(place.path()), [".chosen"]);
    let mut several = store(&place.path().join("other"), Rules::default());
    assert!(give(&mut several, [begin(2, None)]).is_err());
    let (mut reader, writer) = io::pipe().unwrap();
    let output = Output::Stream(Box::new(writer));
    let mut stream = Store::new(output, "s".into(), Rules::default(), Arc::default()).unwrap();
    let [_, start, bytes, end] = whole(0, "x", b"abc");
    let announce = entry(0, "x", Kind::File(None));
    give(&mut stream, [begin(1, None), announce, start, bytes, end]).unwrap();
    drop(stream);
    let mut text = String::new();
    io::Read::read_to_string(&mut reader, &mut text).unwrap();
    assert_eq!(text, "abc");
}

/// Messages of a sender that keeps to no rule.
fn any_message() -> impl Strategy<Value = FromSender> {
    let name = prop_oneof![
        Just("x"),
        Just(".."),
        Just("."),
        Just(""),
        Just("/etc"),
        Just("a/b"),
        Just(".ssh"),
        Just("..x"),
        Just("out"),
        Just("\0")
    ];
    let path = prop::collection::vec(name.prop_map(str::to_owned), 0..4);
    let id = 0..4u64;
    let kind = prop_oneof![
        prop::option::of(0..9u64).prop_map(Kind::File),
        Just(Kind::Folder),
        prop_oneof![Just(".."), Just("/"), Just("x"), Just("../../x")]
            .prop_map(|target| Kind::Link(target.to_owned())),
    ];
    let any_entry = (0..9u64, path.clone(), kind).prop_map(|(id, path, kind)| Entry {
        id,
        path,
        kind,
        mode: Some(0o7777),
        modified: Some((i64::MAX, u32::MAX)),
    });
    prop_oneof![
        any_entry.clone().prop_map(FromSender::Entry),
        any_entry.prop_map(FromSender::Close),
        (id.clone(), 0..9u64).prop_map(|(id, offset)| FromSender::Start(Place { id, offset })),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|b| FromSender::Bytes(b.into())),
        (id.clone(), 0..9u64).prop_map(|(id, size)| FromSender::End(End {
            id,
            size,
            sha256: hex(&Sha256::digest(b"")),
        })),
        (id.clone(), 0..3usize).prop_map(|(id, count)| FromSender::Blocks(Blocks {
            id,
            digests: vec![[0; DIGEST]; count],
        })),
        id.prop_map(|id| FromSender::Broken(Reason { id, reason: "x".into() })),
        Just(FromSender::Finish),
    ]
}

proptest! {
    /// Whatever a sender sends, nothing outside of the folder changes, and nothing hidden or
    /// replaced appears inside.
    #[test]
    fn arbitrary_messages_stay_in_the_folder(messages in prop::collection::vec(any_message(), 0..40)) {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(place.path().join("precious"), "old").unwrap();
        std::fs::write(inside.join("x"), "old").unwrap();
        std::os::unix::fs::symlink("..", inside.join("out")).unwrap();
        let mut store = store(&inside, Rules::default());
        let mut replies = Vec::new();
        store.handle(begin(9, None), &mut replies).unwrap();
        for message in messages {
            // A failed transfer takes no more messages; this one does, to find more.
            let _ = store.handle(message, &mut replies);
        }
        drop(store);
        prop_assert_eq!(names(place.path()), ["inside", "precious"]);
        prop_assert_eq!(std::fs::read(inside.join("x")).unwrap(), b"old");
        for name in names(&inside) {
            prop_assert!(!name.starts_with('.') || name.ends_with(".polypath-part"), "{}", name);
        }
    }
}
