# frozen_string_literal: true

require "pando/doctor/lazy_state/loading"
require "pando/doctor/lazy_state/result"

module Pando
  module Doctor
    module LazyState
      # Findings about code: files loaded, text compiled and methods defined while requests were served.
      #
      # @api private
      class CodeFindings
        SHOWN = 20 # files or methods in the details of a finding

        # @param loading [Loading] @param defined [Array<Definitions::Defined>]
        # @param owners [Hash{Object => Array<Group>}] groups of objects by what they belong to
        # @param places [Places]
        def initialize(loading, defined, owners, places)
          @loading = loading
          @defined = defined
          @owners = owners
          @places = places
        end

        # @return [Array<ForkSafety::Finding>]
        def findings = loads + texts + methods

        private

        def bytes_of(owner) = @owners.fetch(owner, []).reject(&:vm_table?).sum(&:lasting_bytes)

        # Each file of the application is a finding. The files of a gem are one finding, and so are those of Zeitwerk,
        # because one change loads them all. A file that is loaded again and again is no lazy state.
        def loads
          again = @loading.loads.group_by(&:path).transform_values(&:size)
          @loading.loads.select { |load| again[load.path] == 1 }
                  .group_by { |load| [library(load), load.autoload?] }
                  .map { |(library, _), all| load_finding(library, all) }
        end

        def library(load)
          @places.library(load.path) || (ZeitwerkFiles.loader_of(load.path) ? "files of Zeitwerk" : load.path)
        end

        def load_finding(library, loads)
          bytes = loads.sum { |load| bytes_of(load) }
          files = loads.flat_map(&:files)
          first = loads.max_by { |load| bytes_of(load) }
          details = { bytes: bytes, request: first.window + 1, loaded: loads.map(&:title).first(SHOWN),
                      files: files.first(SHOWN), files_count: files.size }
          build(first.autoload? ? :lazy_constant : :lazy_require, loads.size == 1 ? first.title : library, first.place,
                severity: load_severity(first, files, bytes),
                message: load_message(loads, files, bytes), advice: load_advice(loads), details: details)
        end

        # Rails intentionally loads an application's own files at boot in production only.
        def load_severity(first, files, bytes)
          return :note if ZeitwerkFiles.loader_of(first.path) && ZeitwerkFiles.loaded_when_needed?

          files.size >= Thresholds::FILES ? :warning : Thresholds.severity(bytes)
        end

        # @param loads [Array<Loading::Load>] of one library or file
        # @return [String]
        def load_advice(loads)
          names = loads.map(&:title).first(3).join(", ") + (", ..." if loads.size > 3).to_s
          return "Require at boot: #{names}." unless loads.first.autoload?
          return "Load it at boot: config.eager_load = true in Rails, Zeitwerk::Loader.eager_load_all elsewhere." \
            if ZeitwerkFiles.loader_of(loads.first.path)

          "Name at boot what autoload leaves to the first use: #{names}#{eager_note(loads.first.constant)}."
        end

        # ActiveSupport::Autoload gives a namespace eager_load!, but only for what is declared as eager.
        def eager_note(constant)
          name = constant.split("::").first
          known = Object.const_get(name) unless Object.autoload?(name)
          " (#{name}.eager_load! leaves out what is not declared as eager)" if known.respond_to?(:eager_load!)
        rescue NameError
          nil
        end

        def build(kind, subject, place, **facts)
          ForkSafety::Finding.new(kind, subject: subject, location: place&.join(":"), **facts)
        end

        def load_message(loads, files, bytes)
          names = loads.map(&:title)
          "Request #{loads.map(&:window).min + 1} #{loads.first.autoload? ? "autoloaded" : "loaded"} " \
            "#{names.first(3).join(", ")}#{" and #{names.size - 3} more" if names.size > 3} " \
            "(#{Thresholds.count(files.size, "file")}, #{Thresholds.size(bytes)})."
        end

        # Code that each request compiles again is no lazy state.
        def texts
          @loading.compiled.select { |one| one.windows.size == 1 }.group_by(&:path).filter_map do |path, all|
            bytes = all.sum { |one| bytes_of(one) }
            template = @places.own?(path) && !path.end_with?(".rb", ".ru")
            text_finding(path, all.first, all.size, bytes, template) if template || bytes >= Thresholds::NOTE
          end
        end

        def text_finding(path, first, count, bytes, template)
          place = @places.own?(path) || first.place.nil? ? [path, first.line] : first.place
          request = first.windows.first + 1
          size = "#{Thresholds.count(count, "time")}, #{Thresholds.size(bytes)}"
          name = @places.short(path)
          build(:lazy_code, name, place,
                severity: Thresholds.severity(bytes),
                message: "Request #{request} compiled #{template ? "the template" : "code of"} #{name} (#{size}).",
                advice: ("Compile it at boot: render it once before the fork." if template),
                details: { bytes: bytes, request: request, path: path, caller: first.place&.join(":") })
        end

        def methods
          @defined.filter_map do |one|
            next if @loading.load_of(one.path) || compiled?(one)
            next unless @places.own?(one.path) || (one.names.size >= Thresholds::METHODS && !@places.pando?(one.path))

            method_finding(one, bytes_of(one))
          end
        end

        # The methods of a compiled text belong to its own finding.
        def compiled?(one) = @loading.compiled.any? { |text| text.path == one.path && text.windows.size == 1 }

        def method_finding(one, bytes)
          owners = one.owners.first(3).join(", ")
          names = "#{one.names.first(5).join(", ")}#{", ..." if one.names.size > 5}"
          build(:lazy_method, owners, [one.path, one.line],
                message: "Requests defined #{Thresholds.count(one.names.size, "method")} of #{owners}: #{names}.",
                details: { bytes: bytes, methods: one.names.first(SHOWN), methods_count: one.names.size,
                           owners: one.owners.first(SHOWN) })
        end
      end
    end
  end
end
