# frozen_string_literal: true

require "fileutils"
require "pando/errors"
require "pando/events"
require "pando/telemetry/first_request/app"
require "pando/telemetry/first_request/artefact"
require "pando/telemetry/profilers"

module Pando
  module Telemetry
    # Profiles the first request that a generation serves. The profile shows the work that was not done at boot. The
    # mold of a cold boot makes this object, and all processes that are forked from it inherit it.
    #
    # @api private
    class FirstRequest
      # @param folder [String] of the profiles; created if it does not exist
      # @param profiler [Class] see {Profilers.installed}
      # @raise [BootError] if no profiler is installed, or the folder is not writable
      def initialize(folder, profiler = Profilers.installed)
        @profiler = profiler
        @folder = folder
        @run = "#{Time.now.strftime("%Y%m%d-%H%M%S")}-#{Process.pid}"
        prepare_folder
      end

      # Wraps the application until its first request is over.
      #
      # @param app [#call]
      # @param worker [Cluster::Worker]
      # @return [App]
      def wrap(app, worker) = App.new(app, self, worker)

      # @param generation [Integer]
      # @return [Artefact, nil] nil if another worker of the generation has claimed it
      def claim(generation)
        Artefact.claim(File.join(@folder, "first-request-#{@run}-generation-#{generation}.#{@profiler::NAME}.json"))
      end

      # @return [#start, #stop, #write]
      def profiler = @profiler.new

      private

      def prepare_folder
        FileUtils.mkdir_p(@folder)
        raise Errno::EACCES, @folder unless File.writable?(@folder)
      rescue SystemCallError => e
        raise BootError, "first_request_profile cannot write its profiles: #{e.message}"
      end
    end
  end
end
