# frozen_string_literal: true

require "pando/rack_handler"

module Pando
  # Makes Pando the server that `bin/rails server` starts, unless `-u` or RACKUP_HANDLER names another one, and starts
  # it before the application is loaded. Runs only in the process of that command.
  #
  # @api private
  module RailsServer
    # Extends Rails::Server.
    module Start
      def start(*)
        return super unless server.equal?(RackHandler)

        create_tmp_directories
        setup_dev_caching
        RailsServer.detach(options) if options[:daemonize]
        RackHandler.run(nil, **options)
      end
    end

    # Extends the registry of handlers.
    module Default
      def default(*)
        ENV["RACKUP_HANDLER"] || ENV["RACK_HANDLER"] ? super : RackHandler
      end
    end

    def self.install(server)
      registry.singleton_class.prepend(Default)
      server.prepend(Start)
    end

    # Leaves the terminal if the server can start. Otherwise prints why not and exits.
    def self.detach(options)
      require "pando/rails_server/detaching"
      Detaching.new(options).check
      leave_terminal
    rescue Pando::Error => e
      abort "pando: #{e.message}"
    end

    def self.leave_terminal = Process.daemon(true)

    def self.registry
      require "rackup/handler/pando"
      ::Rackup::Handler
    rescue LoadError # Rack 2 has its own
      require "rack/handler/pando"
      ::Rack::Handler
    end
    private_class_method :registry
  end
end
