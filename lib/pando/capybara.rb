# frozen_string_literal: true

require "capybara"
require "pando/platform"

# Registers `Capybara.server = :pando`, which serves the app under test from threads of the test process. It becomes
# the default where the bundle has no Puma, which is Capybara's own default. On other systems than Linux it is
# Capybara's own server.
Capybara.register_server(:pando) do |app, port, host|
  next Capybara.servers[:default].call(app, port, host) unless Pando::Platform.linux?

  require "pando/http/thread_server"
  require "pando/testing/app_server"
  Pando::Testing::AppServer.run(app, host, port)
end

puma = Gem.loaded_specs.key?("puma")
Capybara.server = :pando if Pando::Platform.linux? && !puma && Capybara.server == Capybara.servers[:default]
