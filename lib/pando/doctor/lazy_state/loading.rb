# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # Traces code that is compiled while requests are served: files that are loaded, with the lines that caused it,
      # and code from strings (templates, class_eval).
      class Loading
        # A file that was loaded, with the files that it loaded in turn; `place` is the line that caused it.
        Load = Struct.new(:window, :path, :place, :constant, :feature, :files) do
          # Whether the first use of its constant loaded it.
          def autoload? = !constant.nil?
          # The constant, or the argument of require.
          def title = constant || feature
        end
        # Code from a string, compiled in the windows given.
        Compiled = Struct.new(:path, :line, :place, :windows)

        TOP = /\A<(?:top|main)/

        attr_reader :loads, :compiled

        def initialize(places)
          @places = places
          @autoloads = Autoloads.new
          @loads = []
          @roots = {} # path of a loaded file => its Load
          @compiled = []
          @window = 0
          @features = $LOADED_FEATURES.to_h { |path| [path, true] }
        end

        def start
          @point = TracePoint.new(:script_compiled) { |point| note_script(point) }
          @point.enable
        end

        def next_window = @window += 1
        def stop = @point&.disable

        # No script is compiled for a library in machine code. The objects that it makes tell which line loaded it.
        def add_libraries(groups)
          made = groups.group_by(&:file)
          $LOADED_FEATURES.each do |path|
            next if @features[path] || @roots[path] || !path.end_with?(".so")

            note_library(path, made.fetch(path, []))
          end
        end

        # @return [Load, nil] which this file was part of
        def load_of(path) = @roots[path]

        private

        def note_script(point)
          frames = caller_locations(2)
          sequence = point.instruction_sequence
          path = sequence.absolute_path || sequence.path
          point.eval_script ? note_string(sequence, frames) : note_file(path, frames)
        end

        def note_file(path, frames)
          add(path, outermost(frames), @window) { @places.line_of(frames) }
        end

        def note_library(path, groups)
          place = groups.filter_map(&:origin).first
          load = @loads.find { |one| one.place == place } if place
          add(path, load, groups.first&.objects&.index(&:positive?) || 0) { place }
        end

        # @param load [Load, nil] that the file is part of; nil: the file begins one
        # @yieldreturn [Array(String, Integer), nil] the line that caused a new load
        def add(path, load, window)
          if load
            load.files << path
          else
            load = Load.new(window, path, yield, @autoloads.constant_of(path), @places.feature(path), [path])
            @loads << load
          end
          @roots[path] = load
        end

        # @return [Load, nil] the load, begun in a request, that these frames belong to
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

      # Remembers which methods exist, to find those that requests define.
      class Definitions
        # The methods that one line has defined.
        Defined = Struct.new(:path, :line, :owners, :names)

        PUBLIC, PRIVATE, METHOD, NAME = %i[instance_methods private_instance_methods instance_method inspect]
                                        .map { |name| Module.instance_method(name) }
        SINGLETON, SINGLETON_NAMES = %i[singleton_class singleton_methods].map { |name| Kernel.instance_method(name) }

        def initialize
          @known = {}.compare_by_identity
          ObjectSpace.each_object(Module) { |one| @known[one] = [names(one), singleton_names(one)] }
        end

        # @return [Array<Defined>] new methods of modules that existed before
        def fresh
          found = {}
          @known.each do |one, (names, singleton_names)|
            (names(one) - names).each { |name| note(found, one, name, one) }
            (singleton_names(one) - singleton_names).each { |name| note(found, SINGLETON.bind_call(one), name, one) }
          end
          found.values
        end

        private

        def names(one) = PUBLIC.bind_call(one, false) + PRIVATE.bind_call(one, false)
        def singleton_names(one) = SINGLETON_NAMES.bind_call(one, false)

        def note(found, holder, name, owner)
          place = METHOD.bind_call(holder, name).source_location
          return unless place

          known = found[place] ||= Defined.new(*place, [], [])
          known.owners |= [NAME.bind_call(owner)]
          known.names << name.name
        rescue NameError
          nil # it has been undefined
        end
      end

      # The constants that Module#autoload (which Zeitwerk uses too) will load on first use, by file.
      class Autoloads
        CONSTANTS, PENDING, NAME = %i[constants autoload? name].map { |name| Module.instance_method(name) }

        def initialize
          @by_base = Hash.new { |all, base| all[base] = [] }
          ObjectSpace.each_object(Module) { |one| note(one) }
        end

        # @return [String, nil] the constant whose first use loaded it
        def constant_of(path)
          plain = path.delete_suffix(".rb")
          found = @by_base.fetch(File.basename(plain), []).find do |feature, _|
            plain == feature || plain.end_with?("/#{feature}")
          end
          found ? found.last : ZeitwerkFiles.constant_of(path)
        end

        private

        def note(one)
          CONSTANTS.bind_call(one, false).each do |constant|
            feature = PENDING.bind_call(one, constant, false)
            next unless feature

            feature = feature.delete_suffix(".rb")
            owner = NAME.bind_call(one)
            @by_base[File.basename(feature)] << [feature, owner == "Object" ? constant.name : "#{owner}::#{constant}"]
          end
        end
      end

      # The files that Zeitwerk manages. It declares the constants of a namespace only when the namespace is loaded,
      # which is too late for {Autoloads}.
      module ZeitwerkFiles
        # @return [Zeitwerk::Loader, nil] that manages this file
        def self.loader_of(path)
          return unless defined?(::Zeitwerk::Registry)

          found = nil
          ::Zeitwerk::Registry.loaders.each do |loader|
            found = loader if loader.dirs.any? { |folder| path.start_with?("#{folder}/") }
          end
          found
        end

        # In an environment of Rails that does not eager load.
        def self.loaded_when_needed?
          defined?(::Rails.env) && %w[development test].include?(::Rails.env.to_s)
        end

        # @return [String, nil] the constant that the file defines
        def self.constant_of(path)
          loader = loader_of(path)
          loader.cpath_expected_at(path) if loader.respond_to?(:cpath_expected_at)
        rescue ::Zeitwerk::Error
          nil # it has to ignore this file
        end
      end
    end
  end
end
