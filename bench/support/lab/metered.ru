# frozen_string_literal: true

# Any app of the lab, its requests metered.

require_relative "meter"

use Bench::Lab::Meter, ENV.fetch("LAB_JOURNAL")
run Rack::Builder.parse_file(ENV.fetch("LAB_APP"))
