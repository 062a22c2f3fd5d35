# frozen_string_literal: true

# The suite reforks between its examples (docs/testing.md). To be required before the app is, by
# `--require pando/rspec` in .rspec or by spec_helper.rb.
require "rspec/core"
require "pando/testing"
require "pando/testing/rspec_plug"

Pando::Testing::RSpecPlug.install
