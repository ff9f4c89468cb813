import CRUDTestSupport

/// What a query, a count or a bulk delete is about.
struct Selection {
    enum Condition {
        case all
        case prefix(String)
        case number(atLeast: Int)
        case key(Int)
        case patch(below: Int)
    }

    var condition: Condition
    var isSorted = false
    /// Whether items are returned with all members.
    var isWhole = false

    /// Whether records may be met in the order of a member, which changes.
    var isByMember: Bool {
        switch condition {
        case .all, .prefix: false
        case .number, .key, .patch: true
        }
    }

    static func random(upTo number: Int, using random: inout SeededGenerator) -> Selection {
        let condition: Condition =
            switch random.next() % 6 {
            case 0: .all
            case 1: .prefix("r\(random.next() % 10)")
            case 2: .number(atLeast: Int(random.next() % UInt64(number + 1)))
            case 3, 4: .key(Int(random.next() % UInt64(Item.keys)))
            default: .patch(below: Int(random.next() % UInt64(number + 1)))
            }
        return Selection(condition: condition, isSorted: random.next() % 3 == 0, isWhole: random.next() % 4 == 0)
    }

    func contains(_ id: Int, _ item: Item) -> Bool {
        switch condition {
        case .all: true
        case .prefix(let prefix): ClientLoad.id(id).hasPrefix(prefix)
        case .number(let least): item.number >= least
        case .key(let key): item.number % Item.keys == key
        case .patch(let limit): item.patch < limit
        }
    }

    /// The parameters `filter` and `prefix`.
    var parameters: [String] {
        switch condition {
        case .all: []
        case .prefix(let prefix): [#""prefix":\#(JSON.quote(prefix))"#]
        case .number(let least): [#""filter":{"op":">=","args":[{"property":"n"},\#(least)]}"#]
        case .key(let key): [#""filter":{"op":"=","args":[{"property":"k"},"k\#(key)"]}"#]
        case .patch(let limit): [#""filter":{"op":"<","args":[{"property":"p"},\#(limit)]}"#]
        }
    }

    /// All parameters of a query.
    func query(of collection: String, cursor: String?) -> String {
        var members = [#""collection":\#(JSON.quote(collection))"#, #""limit":40"#] + parameters
        if isSorted { members.append(#""sort":[{"property":"n"}]"#) }
        if !isWhole { members.append(#""fields":["n","k","p"]"#) }
        if let cursor { members.append(#""cursor":\#(JSON.quote(cursor))"#) }
        return "{\(members.joined(separator: ","))}"
    }

    func count(of collection: String) -> String {
        "{\(([#""collection":\#(JSON.quote(collection))"#] + parameters).joined(separator: ","))}"
    }
}
