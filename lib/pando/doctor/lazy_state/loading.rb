# frozen_string_literal: true

require "pando/doctor/lazy_state/autoloads"

module Pando
  module Doctor
    module LazyState
      # Follows what is compiled while requests are served: files that are loaded, with the line that caused it,
      # and code from strings (templates, class_eval).
      #
      # @api private
      class Loading
        # A file that a line of a request loaded, with those that it loaded in turn.
        Load = Struct.new(:window, :path, :place, :constant, :files) do
          # @return [Boolean] whether it has been waiting for the first use of its constant
          def autoload? = !constant.nil?
          # @return [String] the constant, or what it is required by
          def title = constant || feature

          # @return [String]
          def feature
            folder = $LOAD_PATH.map(&:to_s).select { |one| path.start_with?("#{one}/") }.max_by(&:size)
            path.delete_prefix("#{folder}/").sub(/\.(?:rb|so)\z/, "")
          end
        end
        # Code from a string, compiled in the windows given.
        Compiled = Struct.new(:path, :line, :place, :windows)

        TOP = /\A<(?:top|main)/
        private_constant :TOP

        # @return [Array<Load>]
        attr_reader :loads
        # @return [Array<Compiled>]
        attr_reader :compiled

        # @param places [Places]
        def initialize(places)
          @places = places
          @autoloads = Autoloads.new
          @loads = []
          @roots = {} # path of a file that is or was loaded => its Load
          @compiled = []
          @window = 0
          @seen = $LOADED_FEATURES.size
        end

        # @return [nil]
        def start
          @points = [TracePoint.new(:script_compiled) { |point| note_script(point) }]
          @points.each(&:enable)
          watch_require
          nil
        end

        # @param window [Integer] counts from 0
        def open_window(window) = @window = window

        # @return [nil]
        def stop
          @points&.each(&:disable)
          nil
        end

        # @param path [String]
        # @return [Load, nil] that this file came with
        def load_of(path) = @roots[path]

        private

        # A library without a line of Ruby is compiled by nobody: it shows in the list of features when the
        # require that loaded it returns. RubyGems, which makes it a method in Ruby, is not everywhere.
        def watch_require
          point = TracePoint.new(:return) { note_features if $LOADED_FEATURES.size > @seen }
          point.enable(target: Kernel.instance_method(:require))
          @points << point
        rescue ArgumentError
          nil
        end

        def note_features
          fresh = $LOADED_FEATURES[@seen..] || []
          @seen = $LOADED_FEATURES.size
          fresh.each { |path| note_file(path, caller_locations(2)) if path.end_with?(".so") && !@roots[path] }
        end

        def note_script(point)
          frames = caller_locations(2)
          sequence = point.instruction_sequence
          path = sequence.absolute_path || sequence.path
          point.eval_script ? note_string(sequence, frames) : note_file(path, frames)
        end

        def note_file(path, frames)
          outer = outermost(frames)
          if outer
            outer.files << path
          else
            outer = Load.new(@window, path, @places.line_of(frames), @autoloads.constant_of(path), [path])
            @loads << outer
          end
          @roots[path] = outer
        end

        # The file within whose load, begun in a request, these frames are.
        def outermost(frames)
          frame = frames.reverse_each.find { |one| TOP.match?(one.label) && @roots[one.absolute_path || one.path] }
          frame && @roots[frame.absolute_path || frame.path]
        end

        def note_string(sequence, frames)
          return if outermost(frames)

          path = sequence.path
          line = [sequence.first_lineno, 1].max
          known = @compiled.find { |one| one.path == path && one.line == line }
          @compiled << known = Compiled.new(path, line, @places.line_of(frames), []) unless known
          known.windows |= [@window]
        end
      end
    end
  end
end
