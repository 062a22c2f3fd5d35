# frozen_string_literal: true

module Pando
  class Server
    # What a mold loads, beside the application, only if the configuration asks for it.
    #
    # Of Payload, in a mold.
    #
    # @api private
    module OptionalFeatures
      private

      # Before the application.
      def apply_page_settings
        require "pando/server/page_settings"
        PageSettings.apply(huge: @config.transparent_huge_pages, merge: @config.same_page_merging)
      end

      # Before the application.
      def load_first_request
        require "pando/telemetry/first_request"
        @first_request = Telemetry::FirstRequest.new(@config.first_request_profile_folder)
      end

      # Who has asked for it is told.
      def check_collections
        return if @config.gc_major == :ruby || @config.default?(:gc_major)

        reason = Refork::MajorGC.obstacle or return
        Events.emit("gc.deferral_unavailable", setting: "gc major: #{@config.gc_major.inspect}", reason: reason)
      end

      # Rails' health check is asked only where the application has that route.
      # @return [String, nil]
      def self_test
        return @config.self_test unless @config.default?(:self_test)

        @config.self_test if defined?(Railtie) && Railtie.health_check?
      end

      # When it is there.
      def load_extras
        load_prefault if @config.refork_prefault
        load_reconnection if @config.refork_reconnect
      end

      def load_prefault
        require "pando/refork/prefault"
        @prefault = Refork::Prefault.new(**@config.refork_prefault)
      end

      def load_reconnection
        require "pando/server/reconnection"
        @reconnection = Reconnection.new
      end
    end
  end
end
