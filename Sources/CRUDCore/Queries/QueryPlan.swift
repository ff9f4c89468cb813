import CRUDJSON

/// How a query was carried out, for whoever wonders.
struct QueryPlan {
    /// Who has brought the records into their order.
    enum Sort: String {
        /// Nobody: they came by id.
        case id
        case storage, host
    }

    /// Whether the backend has found the records, rather than this side walked through all.
    var isPushedDown = false
    /// The property path whose index has served; nil: none has.
    var index: String?
    var sort: Sort
    /// How many records were looked at, by the backend as far as it tells.
    var scanned = 0

    init(sort: Sort) {
        self.sort = sort
    }

    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { plan in
            plan.member("pushdown", isPushedDown)
            plan.key("index")
            if let index { plan.string(index) } else { plan.null() }
            plan.member("sort", sort.rawValue)
            plan.member("scanned", scanned)
        }
        return writer.bytes
    }
}
