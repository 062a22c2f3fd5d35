// Reads a JSON array of manifests and checks each against the schema of its kind. Prints what is wrong, a line each.

import { readFileSync } from "node:fs";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import { ConfigMap } from "kubernetes-models/v1/ConfigMap";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";

const KINDS = { HorizontalPodAutoscaler, ConfigMap, ScaledObject };

for (const manifest of JSON.parse(readFileSync(0))) {
  const Kind = KINDS[manifest.kind];
  try {
    if (Kind?.apiVersion !== manifest.apiVersion) throw new Error(`no schema of ${manifest.apiVersion}`);
    new Kind(manifest).validate();
  } catch (error) {
    console.log(`${manifest.kind}: ${error.message}`);
  }
}
