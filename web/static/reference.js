SwaggerUIBundle({
  url: "/openapi.yaml",
  domNode: document.getElementById("reference"),
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
