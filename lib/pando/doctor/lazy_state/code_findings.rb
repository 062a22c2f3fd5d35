# frozen_string_literal: true

require "pando/doctor/lazy_state/advice"
require "pando/doctor/lazy_state/thresholds"

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

        def bytes_of(owner) = @owners.fetch(owner, []).sum(&:lasting_bytes)

        # A file of the application's is a finding of its own; those of a gem are one together, and those of
        # Zeitwerk, which one change would load. What is loaded again and again is no lazy state.
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
                message: load_message(loads, files, bytes), advice: Advice.load(loads), details: details)
        end

        # Rails loads an application's own files at boot in production only, and that is as it should be.
        def load_severity(first, files, bytes)
          return :note if ZeitwerkFiles.loader_of(first.path) && ZeitwerkFiles.loaded_when_needed?

          files.size >= Thresholds::FILES ? :warning : Thresholds.severity(bytes)
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

        # Text that each request compiles anew is no lazy state.
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

        # The methods of a text that was compiled come with it.
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
