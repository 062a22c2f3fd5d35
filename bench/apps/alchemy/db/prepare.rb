# frozen_string_literal: true

# Makes the database: Alchemy's tables, its people, and a site's worth of rows, the same wherever it runs. Then it logs
# two of the people in, and writes their cookies and tokens to sessions.json. It writes the assets too.

require_relative "../config/environment"
require_relative "content"

ActiveJob::Base.queue_adapter = :test # nothing resizes the pictures

ActiveRecord::Migration.verbose = false
Rails.application.migration_railties.each do |railtie| # in the order in which an installer copies them
  ActiveRecord::MigrationContext.new(railtie.paths["db/migrate"].existent).migrate if railtie.respond_to?(:paths)
end
ActiveRecord::Base.descendants.each(&:reset_column_information)

Devise.stretches = 1 # of the passwords, which nobody guesses here
%w[admin editor author member].each do |role|
  (1..10).each do |number|
    Alchemy::User.create!(login: "#{role}#{number}", email: "#{role}#{number}@example.com", firstname: role.capitalize,
                          lastname: "No. #{number}", alchemy_roles: [role], password: "correct horse")
  end
end
ActiveRecord::Base.transaction { Content.new(Random.new(7)).fill }

sessions = %w[admin1 member1].map do |login|
  browser = ActionDispatch::Integration::Session.new(Rails.application)
  browser.host! "127.0.0.1"
  token = -> { browser.response.body[/name="csrf-token" content="([^"]+)"/, 1] }
  browser.get("/admin/login")
  browser.post("/admin/login", params: { user: { login: login, password: "correct horse" } },
                               headers: { "X-CSRF-Token" => token.call })
  browser.get("/")
  abort "#{login} cannot log in" unless browser.request.env["warden"].authenticated?(:user)
  { cookie: browser.cookies.to_hash.map { |name, value| "#{name}=#{CGI.escape(value)}" }.join("; "), token: token.call }
end
File.write(File.join(ENV.fetch("LAB_FOLDER"), "sessions.json"), JSON.generate(sessions))

Rails.application.assets.processor.process
ActiveRecord::Base.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
