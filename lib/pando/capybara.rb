# frozen_string_literal: true

require "capybara"

# Registers `Capybara.server = :pando`, which serves the app under test from threads of the test process. It becomes
# the default where the bundle has no Puma, which is Capybara's own default.
Capybara.register_server(:pando) do |app, port, host|
  require "pando/http/thread_server"
  Pando::HTTP::ThreadServer.new(app, [TCPServer.new(host, port)]).run
end

puma = Gem.loaded_specs.key?("puma")
Capybara.server = :pando if !puma && Capybara.server == Capybara.servers[:default]
