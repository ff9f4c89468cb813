import CRUDClient
import Foundation

/// What most tests of this module store.
struct User: Codable, Hashable, Identifiable, Queryable {
    enum Status: String, Codable, QueryValue {
        case active, dormant
    }

    var id: String
    var name: String
    var age: Int
    var balance: Decimal = 0
    var nickname: String?
    var joined = Date(timeIntervalSinceReferenceDate: 800_000_000)
    var isAdmin = false
    var status = Status.active
    var tags: [String] = []
    var scores: Set<Int>?
    var address: Address?
    var device = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))

    struct Properties {
        let name = Property(\User.name, CodingKeys.name)
        let age = Property(\User.age, CodingKeys.age)
        let balance = Property(\User.balance, CodingKeys.balance)
        let nickname = Property(\User.nickname, CodingKeys.nickname)
        let joined = Property(\User.joined, CodingKeys.joined)
        let isAdmin = Property(\User.isAdmin, CodingKeys.isAdmin)
        let status = Property(\User.status, CodingKeys.status)
        let tags = Property(\User.tags, CodingKeys.tags)
        let scores = Property(\User.scores, CodingKeys.scores)
        let address = Property(\User.address, CodingKeys.address)
        let device = Property(\User.device, CodingKeys.device)
    }
    static let properties = Properties()
}

struct Address: Codable, Hashable, Queryable {
    var city: String
    var position = Position(latitude: 0)

    /// Its name is one that a Property has for itself, too.
    struct Position: Codable, Hashable, Queryable {
        var latitude: Double

        enum CodingKeys: String, CodingKey {
            case latitude = "lat.dd"
        }

        struct Properties {
            let latitude = Property(\Position.latitude, CodingKeys.latitude)
        }
        static let properties = Properties()
    }

    struct Properties {
        let city = Property(\Address.city, CodingKeys.city)
        let position = Property(\Address.position, CodingKeys.position)
    }
    static let properties = Properties()
}
