# frozen_string_literal: true

require "pando/version"
require "pando/errors"
require "pando/current_role"

# An application server whose worker processes share their memory: a worker that has warmed up becomes the mold that the
# next generation of workers is forked from.
module Pando
end

# Rack 2 loads its class when a command asks for it.
if defined?(Rackup::Server) || (defined?(Rack::Server) && !Rack.autoload?(:Server))
  require "pando/default_handler"
  Pando::DefaultHandler.install
end
require "pando/railtie" if defined?(Rails::Railtie)
