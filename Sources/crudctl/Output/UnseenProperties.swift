import CRUDJSON
import CRUDModel
import CRUDWire

/// The properties that `--sort` or `--fields` names and that no printed record has: as nothing says which properties
/// records have, a mistyped name is accepted like any other.
struct UnseenProperties: ~Copyable {
    /// Those of which no record has had a value so far.
    private var paths: [PropertyPath]
    private var finder: PropertyFinder
    private var hasRecords = false

    /// - Parameter names: paths as text. What is not a path is refused by the daemon.
    init(_ names: [String]) {
        paths = names.compactMap { PropertyPath(text: $0) }
        finder = PropertyFinder(paths)
    }

    /// Reads the records of a page until each property has had a value.
    mutating func read(_ page: ResultObject) throws {
        guard !paths.isEmpty else { return }
        for record in page.elements("records") ?? [] {
            hasRecords = true
            guard let item = ResultObject(Array(record))?.value("item") else { continue }
            let text = Array(item)
            try finder.find(in: text.span)
            var unseen: [PropertyPath] = []
            for (index, path) in paths.enumerated() where finder[index].kind == .null { unseen.append(path) }
            guard unseen.count < paths.count else { continue }
            paths = unseen
            finder = PropertyFinder(unseen)
            if unseen.isEmpty { return }
        }
    }

    /// Says on standard error which ones are missing from all records, if there were any.
    func note() {
        guard hasRecords else { return }
        for path in paths {
            StandardError.write("note: none of these records has a value of \(quoted(path.text.utf8))\n")
        }
    }
}
