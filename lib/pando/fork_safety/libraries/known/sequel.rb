# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "sequel" do
  handled note: "It does not notice a fork. Its connections are closed before, except to SQLite in memory.",
          source: "https://github.com/jeremyevans/sequel/blob/5.110.0/doc/fork_safety.rdoc"
  in_memory = lambda do |database|
    database.adapter_scheme == :sqlite && [nil, "", ":memory:"].include?(database.opts[:database])
  end
  before_fork { Sequel::DATABASES.each { |database| database.disconnect unless in_memory.call(database) } }
end
