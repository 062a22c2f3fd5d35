# frozen_string_literal: true

require "pando/errors"
require "pando/http/rackup"
require "pando/platform"
require "pando/server/app_environment"

module Pando
  # Serves an application for development on other systems than Linux: in a single process, on the threads of another
  # server gem. Of the settings, only `rackup`, `listen` and `environment` apply. There are no workers, hooks, nodes or
  # timeouts.
  #
  # `pando serve` creates it in the process that the user started, which also loads the application.
  class PlainServer
    # A server gem that can be used for this: its feature, and the class here that runs it.
    GEMS = { "puma" => :Puma, "webrick" => :WEBrick }.freeze

    # @param config [Config]
    # @param err [IO] for the message that says what runs
    def initialize(config, err)
      @config = config
      @err = err
    end

    # Returns when the server has been stopped.
    #
    # @return [Integer] exit status
    # @raise [BootError] there is no server gem, or this is production
    def run
      refuse_production
      Dir.chdir(@config.directory)
      Server::AppEnvironment.new(@config).apply_name
      name, version = find
      @err.puts "pando: this is #{Platform.name}: serving for development from one plain process by #{name} " \
                "#{version}; no workers, no reforking, no hooks (docs/macos.md)"
      self.class.const_get(GEMS.fetch(name)).run(HTTP::Rackup.load(@config.rackup), @config)
      0
    end

    private

    def refuse_production
      return unless @config.environment == "production"

      raise BootError, "Pando serves in production on Linux only, and this is #{Platform.name}. For development set " \
                       "the environment: pando -e development"
    end

    # @return [Array(String, String)] name and version of the first gem that is installed
    def find
      name = GEMS.keys.find { |one| available?(one) }
      return [name, Gem.loaded_specs[name]&.version.to_s] if name

      raise BootError, "off Linux Pando serves by another server's gem, and there is neither puma nor webrick: add " \
                       "`gem \"puma\", group: :development` to the Gemfile"
    end

    def available?(name)
      require name
      name == "puma" || !WEBrick.handler.nil?
    rescue LoadError
      false
    end

    # Puma, in single mode and without its config file.
    module Puma
      THREADS = [0, 5].freeze

      def self.run(app, config)
        require "puma/configuration"
        require "puma/launcher"
        addresses = config.listen.map { |listen| address(listen) }
        configuration = ::Puma::Configuration.new(config_files: ["-"]) do |puma|
          puma.clear_binds!
          addresses.each { |one| puma.bind(one) }
          puma.app(app)
          puma.environment(config.environment)
          puma.threads(*THREADS)
          puma.workers(0) # WEB_CONCURRENCY is meant for Pando
          puma.quiet
        end
        ::Puma::Launcher.new(configuration).run
      end

      def self.address(listen)
        return "tcp://#{listen}" if listen.tcp?
        raise BootError, "listen #{listen}: sockets of systemd exist only on Linux" unless listen.unix?

        listen.kind == :abstract ? "unix://@#{listen.path}" : "unix://#{listen.path}"
      end
      private_class_method :address
    end

    # WEBrick, through the handler of the rackup gem, or of Rack 2.
    module WEBrick
      class << self
        def run(app, config)
          listen, *others = config.listen
          if others.any? || !listen.tcp?
            raise BootError, "webrick listens on one TCP address: #{config.listen.join(", ")}"
          end

          %w[INT TERM].each { |signal| trap(signal) { handler.shutdown } }
          handler.run(app, Host: listen.host, Port: listen.port)
        end

        # @return [Module, nil]
        def handler
          { "rackup/handler/webrick" => "Rackup::Handler::WEBrick", "rack/handler/webrick" => "Rack::Handler::WEBrick" }
            .each do |file, name|
              require file
              return Object.const_get(name)
            rescue LoadError, NameError
              next
            end
          nil
        end
      end
    end
    private_constant :Puma, :WEBrick
  end
end
