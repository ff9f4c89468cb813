import CRUDModel
import CRUDWire

/// Tells a mistyped name from a collection that is merely empty: where a pattern maps every name, both look alike.
enum UnknownCollection {
    /// Says on standard error that a collection does not exist and that no rule of the configuration names it; to be
    /// called where nothing was found there.
    static func note(_ name: String, _ client: Client) async {
        // It is a hint: where the daemon does not reply, there is none.
        guard let list = try? await client.call("collection.list", json: Array("{}".utf8)),
            let collections = ResultObject(list)?.elements("collections")
        else { return }
        let isListed = collections.contains { collection in
            // Strings are equal where texts are canonically equivalent; names are not.
            ResultObject(Array(collection))?.string("name")?.utf8.elementsEqual(name.utf8) == true
        }
        guard !isListed else { return }
        StandardError.write(
            "note: no rule of the configuration names \(quoted(name.utf8)), and it has no records\n")
    }
}
