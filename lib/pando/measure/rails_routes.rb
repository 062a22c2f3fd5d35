# frozen_string_literal: true

require "json"
require "pando/measure/advice"
require "pando/server/app_environment"
require "pando/server/launch"
require "rbconfig"
require "timeout"

module Pando
  module Measure
    # The routes of a Rails application. Another process loads the application to read them.
    #
    # @api private
    class RailsRoutes
      PROGRAM = File.expand_path("routes_program.rb", __dir__)
      # Files that every Rails application has.
      RAILS = %w[config/application.rb config/environment.rb].freeze
      private_constant :PROGRAM, :RAILS

      # @return [Boolean]
      def self.any?(config) = RAILS.all? { |name| File.file?(File.join(config.directory, name)) }

      # @param config [Config] @param folder [String]
      def initialize(config, folder)
        @config = config
        @folder = folder
      end

      # @return [Array<String>]
      # @raise [NotMeasured] the application cannot be loaded
      def paths
        status = run
        raise NotMeasured, failure unless status&.success? && File.file?(result)

        JSON.parse(File.read(result))
      end

      private

      def run
        pid = Process.spawn(environment, RbConfig.ruby, *Server::Launch.load_path, PROGRAM, result,
                            pgroup: true, chdir: @config.directory, in: File::NULL, out: output, err: %i[child out])
        Timeout.timeout(@config.boot_timeout) { Process.wait2(pid).last.tap { pid = nil } }
      rescue Timeout::Error
        nil
      ensure
        end_with(pid) if pid
      end

      def end_with(pid)
        Process.kill(:KILL, pid)
        Process.wait(pid)
      rescue Errno::ESRCH, Errno::ECHILD
        nil
      end

      def environment
        { "SOLID_QUEUE_IN_PUMA" => nil }
          .merge(Server::AppEnvironment::VARIABLES.first(2).to_h { |name| [name, @config.environment] })
      end

      def result = File.join(@folder, "routes")
      def output = File.join(@folder, "routes.output")

      def failure
        said = Advice.read(output).strip
        ["the application could not be loaded to read its routes", *Advice.on(said, @config.environment),
         Advice.last_words(said)].join("\n")
      end
    end
  end
end
