# frozen_string_literal: true

require "pando/rack_handler"

module Pando
  # Makes Pando the server that `rackup` and `bin/rails server` start, unless `-s`, `-u` or RACKUP_HANDLER names another
  # one. Extends the registry of handlers, in the process of these commands.
  #
  # @api private
  module DefaultHandler
    # The registry asks this only if the command names no server.
    def default(*)
      ENV["RACKUP_HANDLER"] || ENV["RACK_HANDLER"] ? super : RackHandler
    end

    class << self
      # Does nothing in a process that starts no server through Rack.
      def install
        registry.singleton_class.prepend(self) if defined?(::Rackup::Server) || rack2?
      end

      private

      # Rack 2 has the class itself. To ask for it would load it.
      def rack2? = defined?(::Rack) && !::Rack.autoload?(:Server) && defined?(::Rack::Server)

      def registry
        require "rackup/handler/pando"
        ::Rackup::Handler
      rescue LoadError # Rack 2 has its own
        require "rack/handler/pando"
        ::Rack::Handler
      end
    end
  end
end
