# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "pando/measure/pando_subject"
require "pando/measure/puma_subject"
require "pando/sys"

module Pando
  module Measure
    # The servers, up at the same time, and a folder for what they write. Whatever ends the command, nothing of it stays
    # behind. Owned by the process of the command.
    #
    # @api private
    class Stage
      # How many bytes the name of a UNIX socket has room for is little.
      LONGEST_FOLDER = 60
      SIGNALS = %w[INT TERM HUP].freeze
      private_constant :LONGEST_FOLDER, :SIGNALS

      # @yieldparam stage [Stage]
      def self.open
        stage = new
        yield stage
      ensure
        stage&.close
      end

      # @return [String]
      attr_reader :folder

      def initialize
        Sys.subreaper! # what a server leaves behind becomes our child
        @folder = Dir.mktmpdir("pando-measure", ("/tmp" if Dir.tmpdir.bytesize > LONGEST_FOLDER))
        @subjects = []
      end

      # Starts the servers, one after the other, so that both boot at the same pace.
      #
      # @param kinds [Array<Class>]
      # @yieldparam subject [Subject] that is being started
      # @return [Array<Subject>] ready
      # @raise [NotMeasured]
      def start(kinds, config, workers:)
        kinds.each do |kind|
          place = File.join(folder, kind.name[/\w+\z/])
          Dir.mkdir(place)
          @subjects << kind.new(config, workers: workers, folder: place)
          yield @subjects.last
          @subjects.last.start
          @subjects.last.await
        end
        @subjects
      end

      # However impatient the user is, this is done to its end; it takes a bounded time.
      def close
        SIGNALS.each { |name| Signal.trap(name, "IGNORE") }
        @subjects.each(&:stop)
        @subjects.each(&:finish)
        end_descendants
      ensure
        SIGNALS.each { |name| Signal.trap(name, "DEFAULT") }
        FileUtils.rm_rf(folder)
      end

      private

      def end_descendants
        until (left = ProcessTree.new(Process.pid, //).pids.drop(1)).empty?
          left.each { |pid| Subject.kill(pid) }
          Process.wait
        end
      rescue Errno::ECHILD
        nil
      end
    end
  end
end
