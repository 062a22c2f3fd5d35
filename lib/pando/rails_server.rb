# frozen_string_literal: true

require "pando/platform"
require "pando/rack_handler"

module Pando
  # `bin/rails server` starts Pando before the application is loaded. Runs only in the process of that command.
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

    def self.install(server) = server.prepend(Start)

    # Leaves the terminal if the server can start. Otherwise prints why not and exits: a process that has detached has
    # nowhere to say so.
    def self.detach(options)
      require "pando/config"
      check(Config.load(RackHandler.arguments(options), env: ENV.to_h.merge(RackHandler.environment(options))))
      leave_terminal
    rescue Pando::Error => e
      abort "pando: #{e.message}"
    end

    def self.leave_terminal = Process.daemon(true)

    # @raise [BootError] an address or the pidfile cannot be had
    def self.check(config)
      return unless Platform.linux?

      require "pando/cluster"
      require "pando/cluster/listening/listeners"
      require "pando/cluster/pid_file"
      Cluster::PidFile.new(config.pidfile).claim.release
      config.listen.each do |listen| # what a service manager has opened is not ours to try
        Cluster::Listening::OwnListener.open(listen, 0).close unless listen.kind == :systemd
      end
    end
    private_class_method :check
  end
end
