# frozen_string_literal: true

require "rack/handler"
require "pando/rack_handler"

# Found by `rackup -s pando` of Rack 2. With Rack 3, Rackup looks for lib/rackup/handler/pando.rb first.
Rack::Handler.register(:pando, "Pando::RackHandler") if Rack::Handler.respond_to?(:register)
