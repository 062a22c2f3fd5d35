# frozen_string_literal: true

# The Rails application of test/fixtures/apps, which says in each response what the one before has cost.

require_relative "../../test/fixtures/apps/rails/config/environment"
require_relative "../support/gauge"

use Bench::Gauge
run Rails.application
