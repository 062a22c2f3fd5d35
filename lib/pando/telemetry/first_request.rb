# frozen_string_literal: true

require "fileutils"
require "pando/errors"
require "pando/events"
require "pando/telemetry/first_request/app"
require "pando/telemetry/first_request/artefact"
require "pando/telemetry/profilers"

module Pando
  module Telemetry
    # Profiles the first request that a generation serves: what it does is what was not done at boot. Made by the
    # mold of a cold boot, inherited by all that comes from it.
    #
    # @api private
    class FirstRequest
      # @param folder [String] of the profiles; made if it isn't there
      # @param profiler [Class] see {Profilers.installed}
      # @raise [BootError] no profiler is installed, or the folder cannot be written to
      def initialize(folder, profiler = Profilers.installed)
        @profiler = profiler
        @folder = folder
        @run = "#{Time.now.strftime("%Y%m%d-%H%M%S")}-#{Process.pid}"
        prepare_folder
      end

      # What stands before the application until the first request is over.
      #
      # @param app [#call]
      # @param worker [Cluster::Worker]
      # @return [App]
      def wrap(app, worker) = App.new(app, self, worker)

      # @param generation [Integer]
      # @return [Artefact, nil] nil when another worker of the generation has it
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
