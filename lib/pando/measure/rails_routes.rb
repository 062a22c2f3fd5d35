# frozen_string_literal: true

require "json"
require "pando/measure/advice"
require "pando/server/app_environment"
require "pando/server/launch"
require "rbconfig"

module Pando
  module Measure
    # The routes of a Rails application. Another process loads the application to read them.
    #
    # @api private
    module RailsRoutes
      # Files that every Rails application has.
      RAILS = %w[config/application.rb config/environment.rb].freeze
      # Writes the paths of the application's GET routes without parameters to the given file. Threads that the
      # application has started may run for ever.
      PROGRAM = <<~RUBY
        require "json"
        require "pando/doctor/subject/rails_app"
        require File.expand_path("config/environment")
        application = Rails.application
        application.reload_routes_unless_loaded if application.respond_to?(:reload_routes_unless_loaded)
        File.write(ARGV.fetch(0), JSON.generate(Pando::Doctor::Subject::RailsApp.routes(application)))
        exit!(true)
      RUBY
      private_constant :RAILS, :PROGRAM

      class << self
        # @return [Boolean]
        def any?(config) = RAILS.all? { |name| File.file?(File.join(config.directory, name)) }

        # @param config [Config] @param folder [String]
        # @return [Array<String>]
        # @raise [NotMeasured] the application cannot be loaded
        def paths(config, folder)
          result, output = %w[routes routes.output].map { |name| File.join(folder, name) }
          return JSON.parse(File.read(result)) if run(config, result, output) && File.file?(result)

          said = Advice.read(output).strip
          raise NotMeasured, ["the application could not be loaded to read its routes",
                              *Advice.on(said, config.environment), Advice.last_words(said)].join("\n")
        end

        private

        # @return [Boolean]
        def run(config, result, output)
          pid = Process.spawn(environment(config), RbConfig.ruby, *Server::Launch.load_path, "-e", PROGRAM, result,
                              pgroup: true, chdir: config.directory, in: File::NULL, out: output, err: %i[child out])
          waiter = Process.detach(pid)
          return waiter.value.success? if waiter.join(config.boot_timeout)

          false
        ensure
          end_process(waiter) if waiter&.alive?
        end

        def end_process(waiter)
          Process.kill(:KILL, waiter.pid)
          waiter.join
        rescue Errno::ESRCH
          nil # it has just ended
        end

        def environment(config)
          { "SOLID_QUEUE_IN_PUMA" => nil }
            .merge(Server::AppEnvironment::VARIABLES.first(2).to_h { |name| [name, config.environment] })
        end
      end
    end
  end
end
