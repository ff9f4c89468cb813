/// A record as a reader emits it. Bytes, as Swift's `==` takes some texts for equal that are not.
struct Record: Equatable {
    var position: Int
    var id: [UInt8]
    var item: [UInt8]
    var revision: [UInt8]

    init(_ position: Int, _ id: String, _ item: String, _ revision: String = "r") {
        self.init(position: position, id: Array(id.utf8), item: Array(item.utf8), revision: Array(revision.utf8))
    }

    init(position: Int, id: [UInt8], item: [UInt8], revision: [UInt8]) {
        self.position = position
        self.id = id
        self.item = item
        self.revision = revision
    }

    var idText: String { String(decoding: id, as: UTF8.self) }
    var itemText: String { String(decoding: item, as: UTF8.self) }
}
