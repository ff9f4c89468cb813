import CRUDModel
import CRUDPlacement
import CRUDTestSupport

/// A state directory with the catalog of a test.
struct StateDirectory {
    private let directory: TemporaryDirectory
    var path: String { "\(directory.path)/state" }
    var file: String { "\(path)/collections.jsonl" }

    init() throws {
        directory = try TemporaryDirectory()
        try Files.makeDirectory(path, mode: 0o700)
    }

    func open(_ calls: FileCalls = FileCalls()) throws -> Catalog { try Catalog(directory: path, calls: calls) }

    func prepare(_ text: String) throws { try Files.write(text, to: file, mode: 0o600) }

    func contents() throws -> String { String(decoding: try Files.read(file), as: UTF8.self) }
}

extension Catalog {
    func placement(_ name: String) -> Placement { entry(Array(name.utf8)).placement }

    func set(_ name: String, _ placement: Placement) throws(CatalogError) {
        let name = Array(name.utf8)
        try commit([Transition(name, from: entry(name), to: placement)])
    }
}

extension CollectionPlace {
    static let main = Self(backend: "main", format: .json)
    static let xml = Self(backend: "main", format: .xml)
    static let other = Self(backend: "other", format: .json)
    static let files = Self(backend: "files", format: .json)
}
