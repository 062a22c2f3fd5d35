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
        Load = Struct.new(:window, :path, :place, :constant, :feature, :files) do
          # @return [Boolean] whether it has been waiting for the first use of its constant
          def autoload? = !constant.nil?
          # @return [String] the constant, or what it is required by
          def title = constant || feature
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
          @features = $LOADED_FEATURES.to_h { |path| [path, true] }
        end

        # @return [nil]
        def start
          @point = TracePoint.new(:script_compiled) { |point| note_script(point) }
          @point.enable
          nil
        end

        # @param window [Integer] counts from 0
        def open_window(window) = @window = window

        # @return [nil]
        def stop
          @point&.disable
          nil
        end

        # A library in machine code is compiled by nobody. What it makes while it is loaded says who wanted it.
        #
        # @param groups [Array<Group>]
        # @return [nil]
        def add_libraries(groups)
          made = groups.group_by(&:file)
          $LOADED_FEATURES.each do |path|
            next if @features[path] || @roots[path] || !path.end_with?(".so")

            note_library(path, made.fetch(path, []))
          end
        end

        # @param path [String]
        # @return [Load, nil] that this file came with
        def load_of(path) = @roots[path]

        private

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
            @loads << outer = begin_load(@window, path, @places.line_of(frames))
          end
          @roots[path] = outer
        end

        def note_library(path, groups)
          place = groups.filter_map(&:origin).first
          load = @loads.find { |one| one.place == place } if place
          if load
            load.files << path
          else
            window = groups.first&.objects&.index(&:positive?) || 0
            @loads << load = begin_load(window, path, place)
          end
          @roots[path] = load
        end

        def begin_load(window, path, place)
          Load.new(window, path, place, @autoloads.constant_of(path), @places.feature(path), [path])
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
