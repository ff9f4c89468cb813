import CRUDModel
import CRUDPlacement
import CRUDTestSupport
import Testing

/// What etc/CHANGING-THE-DATABASE.md tells administrators of each state is what the transitions make of it.
@Suite struct StatesDocumentTests {
    private static let (here, there, elsewhere) = (CollectionPlace.main, CollectionPlace.other, CollectionPlace.files)

    /// What the column "you may" may say, and whether that holds of a placement.
    private static let permissions: [(text: String, holds: @Sendable (Placement) -> Bool)] = [
        ("change its line freely", { next($0, Wish(elsewhere, occupancy: .records(3))) != nil }),
        ("change its line with `--move`", { next($0, moving)?.destination == elsewhere }),
        (
            "or freely while it has no records",
            {
                next($0, Wish(elsewhere, occupancy: .empty))?.authority == elsewhere
                    && next($0, Wish(elsewhere, occupancy: .records(3))) == nil
            }
        ),
        ("cancel by the old line", { next($0, Wish(here))?.state == .resident(here) }),
        ("name a third place with `--move`", { next($0, moving)?.destination == elsewhere }),
        ("repeat with `--move`", { next($0, Wish(there, move: true)) == $0 }),
        ("drop it", { next($0, .drop(found: nil)).map { $0.authority == nil && $0.originals.isEmpty } == true }),
        ("drop COLLECTION --moved", { next($0, .dropOriginals).map { $0.originals.isEmpty } == true }),
        (
            "is rejected before, as it may be older",
            {
                next($0, moving) == nil && next($0, Wish(elsewhere, force: true))?.authority == elsewhere
            }
        ),
        (
            "is rejected before, unless it moves it there",
            {
                next($0, Wish(elsewhere, force: true)) == nil && next($0, moving)?.destination == elsewhere
            }
        ),
    ]

    private static let moving = Wish(elsewhere, move: true, occupancy: .records(3))

    /// - Returns: nil where it is refused.
    private static func next(_ placement: Placement, _ event: PlacementEvent) -> Placement? {
        switch placement.next(event) {
        case .same: placement
        case .to(let next): next
        case .refused: nil
        }
    }

    private static func next(_ placement: Placement, _ wish: Wish) -> Placement? { next(placement, .want(wish)) }

    /// How the page calls a state.
    private static func name(_ state: Placement.State) -> String {
        switch state {
        case .absent: "absent"
        case .resident: "resident"
        case .planned: "planned"
        case .copying: "copying"
        }
    }

    /// The rows of the tables about states and lists, by their first cell.
    private static func rows() throws -> [String: [String]] {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let text = String(decoding: try Files.read("\(root)/etc/CHANGING-THE-DATABASE.md"), as: UTF8.self)
        let lines = text.split(separator: "\n").drop { $0 != "## Where a collection is" }
            .prefix { !$0.hasPrefix("### ") }
        let cells = lines.filter { $0.hasPrefix("|") }.map { line in
            line.dropFirst().dropLast().split(separator: "|").map { $0.trimming(" ") }
        }
        return Dictionary(cells.map { ($0[0], $0) }) { first, _ in first }
    }

    private func check(_ cell: String?, of placement: Placement) throws {
        let cell = try #require(cell, "the page does not have \(placement)")
        let claims = Self.permissions.filter { cell.contains($0.text) }
        #expect(!claims.isEmpty, "\(cell)")
        for claim in claims { #expect(claim.holds(placement), "\(claim.text): \(placement)") }
    }

    @Test func everyStateIsDescribed() throws {
        let rows = try Self.rows()
        let states: [Placement.State] = [
            .absent, .resident(Self.here), .planned(Self.here, to: Self.there), .copying(Self.here, to: Self.there),
        ]
        var former: String?
        for state in states {
            let row = try #require(rows[Self.name(state)])
            #expect(row.count == 5)
            var cell = row.last
            if let former, let own = cell, own.hasPrefix("the same") { cell = former + own }
            try check(cell, of: Placement(state))
            former = cell
        }
    }

    @Test func theListsAreDescribed() throws {
        let rows = try Self.rows()
        for state in [Placement.State.resident(Self.here), .planned(Self.here, to: Self.there)] {
            try check(rows["originals"]?.last, of: Placement(state, originals: [Self.elsewhere]))
            try check(rows["obsolete"]?.last, of: Placement(state, obsolete: [Self.elsewhere]))
        }
    }
}

extension Substring {
    fileprivate func trimming(_ character: Character) -> String {
        var rest = self
        while rest.first == character { rest.removeFirst() }
        while rest.last == character { rest.removeLast() }
        return String(rest)
    }
}
