import CRUDTestSupport

extension ReferenceTable {
    init(_ source: TableSource) throws {
        try self.init(
            source.ids.map { id in
                Record(id: String(decoding: id, as: UTF8.self), item: try JSON(parsing: source.item(id) ?? []))
            })
    }
}
