# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "sqlite3" do
  fine since: "2.1.0", through: %w[activerecord sequel],
       note: "A child closes the databases it inherited, and what manages the connections opens them anew.",
       source: "https://github.com/sparklemotion/sqlite3-ruby/blob/v2.1.0/adr/2024-09-fork-safety.md"
  handled before: "2.1.0", through: %w[activerecord],
          note: "SQLite must not be carried through a fork. ActiveRecord's connections to it are closed before, " \
                "except databases in memory.",
          source: "https://www.sqlite.org/howtocorrupt.html section 2.6, https://github.com/rails/rails/pull/52931"
  before_fork do
    Pando::ForkSafety::Libraries::ActiveRecordPools.disconnect { |config| config.adapter == "sqlite3" }
  end
  fine before: "2.1.0", through: %w[sequel],
       note: "Its connections are closed before the fork with the others of Sequel.",
       source: "https://github.com/jeremyevans/sequel/blob/5.110.0/doc/fork_safety.rdoc"
  yours since: "2.1.0",
        note: "A child closes the writable databases it inherited.",
        advice: "before_fork { DB.close }, and open it again on the next use",
        source: "https://github.com/sparklemotion/sqlite3-ruby/blob/v2.1.0/CHANGELOG.md"
  yours before: "2.1.0",
        note: "A child that goes on with an inherited database may corrupt it.",
        advice: "before_fork { DB.close }, and open it again on the next use",
        source: "https://www.sqlite.org/howtocorrupt.html section 2.6"
end
