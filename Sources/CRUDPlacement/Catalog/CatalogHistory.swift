/// The text of a catalog's file, replayed.
struct CatalogHistory {
    private(set) var contents = CatalogContents()
    /// Whether a record can be appended: the file is of this version, and ends with a whole line.
    private(set) var isCurrent = false

    /// - Throws: for a line that is not what crudd writes. The last one, without an end, was never acknowledged.
    init(_ text: [UInt8], path: String) throws(CatalogDamage) {
        let isVersion1 = text.first == UInt8(ascii: "{")
        var number = 0
        var start = 0
        while let end = text[start...].firstIndex(of: 0x0A) {
            number += 1
            let line = text[start..<end]
            let damage = CatalogDamage(
                path: path, line: number,
                reason: "it is damaged; restore the file from a backup, or remove the line (see OPERATIONS.md)")
            if isVersion1 {
                guard let record = try? CatalogReader.recordOfVersion1(Array(line)) else { throw damage }
                contents.apply(record)
            } else {
                guard let json = CatalogLine.json(of: line) else { throw damage }
                try apply(json, isFirst: number == 1, path, number)
            }
            start = end + 1
        }
        isCurrent = !isVersion1 && start == text.count && number > 0
    }

    private mutating func apply(
        _ json: [UInt8], isFirst: Bool, _ path: String, _ number: Int
    ) throws(CatalogDamage) {
        do throws(CatalogReader.UnknownText) {
            if isFirst {
                guard try CatalogReader.isFirst(json) else { throw CatalogReader.UnknownText() }
            } else {
                contents.apply(try CatalogReader.record(json))
            }
        } catch {
            // Its checksum is right.
            throw CatalogDamage(
                path: path, line: number, reason: "it was written by a newer crudd; start that, or restore a backup")
        }
    }
}
