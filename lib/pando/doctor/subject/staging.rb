# frozen_string_literal: true

require "json"
require "pando/server"
require "pando/doctor/subject/payload"

module Pando
  module Doctor
    module Subject
      # How the monitor and a cold mold of the stage come by their parts.
      #
      # @api private
      module Staging
        # In the environment: what the doctor wants of them.
        VARIABLE = "PANDO_DOCTOR"

        # @param argv [Array<String>] settings
        # @return [Array(Server, Payload)]
        def self.build(argv)
          settings = JSON.parse(ENV.fetch(VARIABLE), symbolize_names: true)
          wire = Wire.new(settings.fetch(:folder))
          server = Server.new(load(argv, wire))
          subscribe(server.config, wire)
          [server, Payload.new(server, wire, settings)]
        end

        # The file was right when the doctor read it, and may have been edited since.
        def self.load(argv, wire)
          Config.load(argv)
        rescue ConfigError => e
          wire.tell(refused: e.message)
          raise
        end
        private_class_method :load

        # The application's own subscriptions too: they may hold what a fork breaks.
        def self.subscribe(config, wire)
          Events.subscribe { |event| wire.tell(event: event.name, **event.payload) }
          config.subscriptions.each { |one| Events.subscribe(one.name, &one.block) }
        end
        private_class_method :subscribe
      end
    end
  end
end
